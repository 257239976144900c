"""How many more devices each top-level vdev can lose, and which must not be removed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from zconsole.pool.model import GROUP_KINDS, Scan, Vdev
from zconsole.pool.topology import data_vdevs
from zconsole.units import counted


class Redundancy(NamedTuple):
    """How many more devices of a top-level vdev may fail now without losing data."""

    vdev: str
    left: int
    untouchable: tuple[str, ...] = ()
    """At 0: the devices whose loss would lose data."""


REPAIRS = frozenset({"resilver", "rebuild"})


def may_fail(left: int) -> str:
    """How many devices may still fail, in words: ``no device may fail``."""
    return f"{counted(left, 'more device')} may fail" if left > 0 else "no device may fail"


def redundancy(
    root: Vdev, scans: Iterable[Scan] = (), returned: Collection[str] = ()
) -> tuple[Redundancy, ...]:
    """One entry a data-holding top-level vdev, in tree order; names made unique with ``#1``.

    A resilvering, waiting or not-ONLINE leaf counts as missing; a replacing or spare vdev counts
    as present when one of its children is ONLINE and complete. Never below 0. The newcomer of a
    replacing vdev, a leaf that the kernel says is unfilled, and one that came back (named in
    ``returned``) are being filled as long as a repair of ``scans`` runs, though zpool marks them
    only once the first bytes were written; so is a spare of which the source does not tell, where
    the repair has nothing else to fill. Of a dRAID's failure domain, no stripe has two devices
    (vdev_draid.c): however many of them are missing, they count as one.
    """
    repairs = [scan for scan in scans if scan.active and scan.function in REPAIRS]
    spares = bool(repairs) and not _fills_others(root, returned)
    entries: list[Redundancy] = []
    taken: dict[str, int] = {}
    for vdev in data_vdevs(root):
        count = taken.get(vdev.name, 0)
        taken[vdev.name] = count + 1
        filling = any(scan.vdev in (None, vdev.name) for scan in repairs)
        name = f"{vdev.name}#{count}" if count else vdev.name
        own = _of_own_data(vdev)
        marked = _filled(own, returned, spares) if filling else own
        entries.append(_of_top_level(marked, name))
    return tuple(entries)


def is_complete(vdev: Vdev) -> bool:
    """Whether all of this device's data is on it and readable: ONLINE and not being filled."""
    if vdev.children:
        return any(is_complete(child) for child in vdev.children)
    return vdev.state == "ONLINE" and not (vdev.resilvering or vdev.awaiting_resilver)


def parity(vdev: Vdev) -> int:
    """Losses the layout survives when whole: 2 for raidz2, n-1 for an n-way mirror."""
    if vdev.kind == "mirror":
        return max(0, len(vdev.children) - 1)
    if vdev.kind[:-1] in ("raidz", "draid") and vdev.kind[-1].isdigit():
        return int(vdev.kind[-1])
    return 1 if vdev.kind == "raidz" else 0


def _fills_others(root: Vdev, returned: Collection[str]) -> bool:
    """Whether a repair is known to fill anything but spares that stand in, or is at work on one."""
    return any(
        vdev.resilvering or vdev.kind == "replacing" or vdev.name in returned
        for vdev in root.walk()
    )


def _of_own_data(vdev: Vdev) -> Vdev:
    """A dRAID without the marks of devices that only take their part of a distributed spare.

    zpool calls each of them "(resilvering)", as repairs are written to all; the kernel knows that
    nothing of their own is missing (no ZPOOL_CONFIG_RESILVER_TXG, vdev.c).
    """
    if not vdev.kind.startswith("draid"):
        return vdev
    children = (
        child._replace(resilvering=False) if child.unfilled is False else child
        for child in vdev.children
    )
    return vdev._replace(children=tuple(children))


def _filled(vdev: Vdev, returned: Collection[str], spares: bool) -> Vdev:
    """The vdev with newcomers below it, and leaves that came back, marked."""
    if not vdev.children:
        filling = vdev.unfilled or vdev.name in returned
        return vdev._replace(resilvering=True) if filling else vdev
    children = tuple(_filled(child, returned, spares) for child in vdev.children)
    stands_in = spares and vdev.kind == "spare" and children[-1].unfilled is None
    if vdev.kind == "replacing" or stands_in:
        children = (*children[:-1], children[-1]._replace(resilvering=True))
    return vdev._replace(children=children)


def _of_top_level(vdev: Vdev, name: str) -> Redundancy:
    members = vdev.children if vdev.kind not in GROUP_KINDS and vdev.children else (vdev,)
    domains = vdev.failure_group or len(members)
    missing = {n % domains for n, member in enumerate(members) if not is_complete(member)}
    left = max(0, parity(vdev) - len(missing))
    others = tuple(member for n, member in enumerate(members) if n % domains not in missing)
    return Redundancy(name, left, () if left else _untouchable(others))


def _untouchable(members: tuple[Vdev, ...]) -> tuple[str, ...]:
    """At zero left every member that is whole through a single device hangs on that device."""
    names: list[str] = []
    for member in members:
        whole = [leaf.name for leaf in member.leaves() if is_complete(leaf)]
        if len(whole) == 1:
            names.extend(whole)
    return tuple(names)
