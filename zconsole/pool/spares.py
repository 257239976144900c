"""Hot spares that would not help: in use needlessly, failed, or too small for a vdev."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from zconsole.pool.model import Scan, Vdev, data_vdevs, is_group
from zconsole.pool.redundancy import REPAIRS, is_complete
from zconsole.pool.scan_outcome import settling
from zconsole.units import size

LEAST_DEVICE = 64 * 1024**2
"""Bytes of the smallest device that ZFS accepts (SPA_MINDEVSIZE, include/sys/fs/zfs.h)."""
LABELS = 4 * 1024**2 + 512 * 1024
"""Bytes of the labels and the boot block (VDEV_LABEL_{START,END}_SIZE in vdev_impl.h)."""


NAMED = 8
"""Most vdevs to name; the others are counted."""
STANDING = ("AVAIL", "INUSE")
"""States of a spare that has not failed."""


class SpareProblem(NamedTuple):
    """One hot spare that would not help when a device fails."""

    kind: str
    """One of these:

    - ``failed``
    - ``idle``: in use, though the device it replaced is back
    - ``small``: too small for a vdev that no other spare fits, or for all
    - ``elsewhere``: in use, but not in this pool
    - ``several``: in use for several devices, or for one with another spare or a replacement, too
    """
    name: str
    text: str
    """The problem and what to do about it, in one line."""

    @property
    def severity(self) -> str:
        """``warning`` for a spare that failed or should be available again; else ``notice``."""
        return "warning" if self.kind in ("failed", "idle") else "notice"


def spare_problems(
    root: Vdev,
    scans: Iterable[Scan] = (),
    now: float | None = None,
    returned: Collection[str] = (),
) -> tuple[SpareProblem, ...]:
    """Find problems of the pool's hot spares at epoch second ``now``, in tree order.

    While a repair runs, and for some seconds after it, no spare counts as idle: it or the device
    is being filled, and the kernel then releases most spares by itself (spa_vdev_resilver_done).
    Nor does one whose device is named in ``returned``: that came back, and its repair will begin.
    """
    spares = [vdev for vdev in root.children if vdev.vclass == "spare"]
    if not spares:
        return ()
    places, needs = _places(root), _needs(root)
    repairs = [scan for scan in scans if scan.function in REPAIRS]
    calm = not any(s.active or (now is not None and settling(now, s.end)) for s in repairs)
    standing = [spare for spare in spares if spare.state in STANDING]
    most = max(map(_capacity, standing), default=0)
    # Named draid<parity>-<top-level vdev>-<number> (vdev_draid_spare_name, vdev_draid.c).
    drawn = (s.name.split("-") for s in standing if s.kind == "dspare")
    own = {parts[1] for parts in drawn if len(parts) == 3}
    unmet = [(n, name) for n, name in needs if n > most and name.rpartition("-")[2] not in own]
    found: list[SpareProblem] = []
    for spare in spares:
        if spare.shared:
            text = f"spare {spare.name} is attached in several places and counts in none"
            advice = "replace the disks it stands in for"
            found.append(SpareProblem("several", spare.name, f"{text}: {advice}"))
        elif spare.state == "INUSE" and calm:
            found += _in_use(spare, places, returned)
        # Don't judge the size of a failed one: libzfs may report another (seen on 2.3.9).
        if spare.state and spare.state not in STANDING:
            why = f" ({spare.note})" if spare.note else ""
            text = f"spare {spare.name} is {spare.state}{why} and can't stand in"
            advice = "remove it and add another one"
            found.append(SpareProblem("failed", spare.name, f"{text}: {advice}"))
        elif spare.state and (room := _capacity(spare)):
            # Too small for every vdev, or for one that no other spare fits.
            none = min((need for need, _ in needs), default=0) > room
            if (lacking := _too_large(needs if none else unmet, room)) is not None:
                text = f"spare {spare.name} ({size(room)}) is too small for {lacking}"
                found.append(SpareProblem("small", spare.name, text))
    return tuple(found)


def least_bytes(top: Vdev) -> int | None:
    """Return the least bytes of a device that can join a top-level vdev; None if unknown.

    ``vdev_get_min_asize`` (vdev.c): a raidz member needs the top-level vdev's size divided by its
    width, a mirror member all of it. Never more than the smallest present disk has.
    """
    present = min((leaf.size_bytes for leaf in top.leaves() if leaf.size_bytes), default=None)
    if not top.size_bytes or top.kind.startswith("draid"):
        return present
    width = len(top.children) if top.kind.startswith("raidz") else 1
    least = top.size_bytes // max(1, width) + LABELS
    return least if present is None else min(least, present)


def too_small(root: Vdev, room: int) -> str | None:
    """Name the vdevs for which a spare of ``room`` bytes is too small; None if it fits all."""
    return _too_large(_needs(root), room)


def _needs(root: Vdev) -> list[tuple[int, str]]:
    """Return the bytes that a device of each vdev needs, and its name; logs have no spares."""
    return [(least_bytes(top) or 0, top.name) for top in data_vdevs(root)]


def _too_large(needs: Sequence[tuple[int, str]], room: int) -> str | None:
    lacking = sorted(((need, name) for need, name in needs if need > room), key=lambda n: -n[0])
    if not lacking:
        return None
    names = ", ".join(name for _, name in lacking[:NAMED])
    more = f" and {len(lacking) - NAMED} more" if len(lacking) > NAMED else ""
    return f"{names}{more} (needs {size(lacking[0][0])})"


def _capacity(spare: Vdev) -> int:
    """Return the bytes of a spare; 0 if unknown, or for a distributed spare of one dRAID."""
    return 0 if spare.kind == "dspare" else spare.size_bytes or 0


class _Place(NamedTuple):
    """The group in which a spare is in use, and whether that is below another spare's group."""

    group: Vdev
    is_inner: bool


def _places(root: Vdev) -> dict[str, _Place]:
    """Map spares to where they are in use, by GUID and, as text sources have none, by name."""
    groups = [vdev for vdev in root.walk() if is_group(vdev) and vdev.kind == "spare"]
    inner = {id(vdev) for group in groups for vdev in group.children[0].walk()}
    found: dict[str, _Place] = {}
    for group in groups:
        for leaf in (leaf for other in group.children[1:] for leaf in other.leaves()):
            for word in filter(None, (leaf.guid, leaf.name)):
                found.setdefault(word, _Place(group, id(group) in inner))
    return found


def _in_use(
    spare: Vdev, places: Mapping[str, _Place], returned: Collection[str]
) -> Iterator[SpareProblem]:
    """Yield a problem if a spare is in use needlessly, or not for a device of this pool."""
    place = places.get(spare.guid or spare.name)
    if place is None:
        # zpool prints INUSE after searching the other pools (print_status_config, zpool_main.c).
        text = f"spare {spare.name} is INUSE, but not in this pool: it can't stand in here"
        yield SpareProblem("elsewhere", spare.name, text)
    elif (first := place.group.children[0]).children:
        # One device may have several, as each spare and each replacement can fail in turn.
        lost = [leaf.name for leaf in first.leaves() if leaf.state != "ONLINE"] or [first.name]
        text = f"spare {spare.name} is still INUSE for {', '.join(lost)}"
        advice = f"detach {lost[0]} once its replacement is complete, then the spare"
        yield SpareProblem("several", spare.name, f"{text}: {advice}")
    elif is_complete(first) and first.name not in returned:
        text = f"spare {spare.name} is still INUSE though {first.name} is ONLINE and complete"
        advice = f"detach the spare, or {first.name} if it is to be replaced"
        yield SpareProblem("idle", spare.name, f"{text}: {advice}")
    elif place.is_inner:
        text = f"spare {spare.name} is still INUSE for {first.name} ({first.state})"
        yield SpareProblem("several", spare.name, f"{text}, beside another spare")
