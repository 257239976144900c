"""The health of a pool: one word, and the reasons, worst first."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from zconsole.pool.model import Pool, SampleFailure, Vdev
from zconsole.pool.redundancy import Redundancy, parity
from zconsole.pool.scan_outcome import blocked_repair, not_restored
from zconsole.pool.spares import SpareTrouble
from zconsole.pool.topology import data_vdevs
from zconsole.units import duration, size


class Health(NamedTuple):
    """The word of a pool's health, and the reasons, worst first."""

    word: str
    """From the worst: FAULTED, UNAVAIL and SUSPENDED; NOT RESTORED (redundancy is not restored
    and no repair runs); ERRORS (damaged data); DEGRADED, by the states of devices, too: where the
    kernel itself faults a disk, the vdevs above stay ONLINE (spa_async_fault_vdev,
    module/zfs/spa.c 2.4.4); ATTENTION (devices collect errors, a spare failed or is in use for
    nothing, a checkpoint blocks the resilver that runs); OK. UNKNOWN where the source shows
    neither a state nor a device, as with the scan lines of saved output alone. STALE, NOT IMPORTED
    and CONNECTING while no sample comes."""
    severity: str
    """ok, notice, warning or error."""
    reasons: tuple[str, ...] = ()


CONNECTING = Health("CONNECTING", "notice", ("no answer yet",))
"""Of a machine that is asked for the first time."""

_UPKEEP = re.compile(r"\((?:\d+% )?(?:un)?(?:initializ|trim)")
"""How notes of initialize and trim begin: they don't explain why a device is gone."""
MILDER = ("OFFLINE", "DEGRADED")
"""States of devices that come after those of devices that are gone: someone chose the first, and
the second still reads."""


class DeviceStates(NamedTuple):
    """What health is told by of a pool's devices."""

    away: tuple[Vdev, ...]
    """Those that are not ONLINE."""
    errors: tuple[str, ...]
    """Devices with errors since the last clear, in words."""


LOST_STATES = frozenset({"FAULTED", "UNAVAIL", "SUSPENDED"})


def device_states(root: Vdev) -> DeviceStates:
    """The states and errors of all vdevs of a pool."""
    every = tuple(root.walk())
    away = tuple(vdev for vdev in every if vdev.state != "ONLINE")
    return DeviceStates(away, tuple(_counters(every)))


def health(
    pool: Pool,
    now: float,
    regrouped: float | None = None,
    unsteady: Iterable[str] = (),
    damaged: Iterable[tuple[str, int]] = (),
    spares: Collection[SpareTrouble] = (),
    states: DeviceStates | None = None,
) -> Health:
    """The pool's condition from its own figures, at epoch second ``now``: the worst that holds.

    ``regrouped`` and ``damaged`` are as for ``not_restored``. ``unsteady``: devices that lately
    disconnected and returned, in words, which the pool's own counters don't show. ``spares`` that
    would not help are told whatever the word, and make it ATTENTION where that is to be fixed.
    ``states``: those of the pool's devices, where they are known already.
    """
    unrestored = tuple(not_restored(pool, now, regrouped, damaged))
    idle, (away, errors) = tuple(spare.text for spare in spares), states or device_states(pool.root)
    blocked = tuple(blocked_repair(pool))
    reasons = (*unrestored, *blocked, *_data_errors(pool), *_devices(away), *idle)
    if pool.state in LOST_STATES:
        return Health(pool.state or "", "error", (*_lost(pool), *reasons))
    # Missing redundancy before damaged files: the next failing disk would add to them.
    if unrestored or pool.error_count or pool.damaged:
        return Health("NOT RESTORED" if unrestored else "ERRORS", "error", reasons)
    if pool.state is None and not pool.root.children:
        return Health("UNKNOWN", "notice", reasons)
    if pool.state not in (None, "ONLINE") or any(map(_is_impaired, away)):
        word = pool.state if pool.state not in (None, "ONLINE") else "DEGRADED"
        return Health(word or "", "warning", reasons)
    noisy = (*errors, *unsteady)
    if noisy or blocked or any(spare.severity == "warning" for spare in spares):
        return Health("ATTENTION", "warning", (*noisy, *reasons))
    return Health("OK", "ok", reasons)


def without_redundancy(found: Health, root: Vdev, left: Iterable[Redundancy]) -> Health:
    """The health of a pool under repair: not OK while a vdev has nothing ``left`` of what it had.

    zpool calls such a pool ONLINE, as when a disk is back and lacks what was written meanwhile.
    """
    if found.word != "OK":
        return found
    entries = zip(data_vdevs(root), left, strict=True)
    bare = [entry.vdev for vdev, entry in entries if parity(vdev) > entry.left == 0]
    reasons = (f"{name}: no redundancy until the resilver ends" for name in bare)
    return Health("ATTENTION", "warning", (*reasons, *found.reasons)) if bare else found


def unreachable(trouble: SampleFailure, age: float) -> Health:
    """The health of a pool without a fresh sample; the last good one is ``age`` seconds old."""
    lost = trouble.kstat if trouble.kstat in LOST_STATES else None
    word = lost or ("NOT IMPORTED" if trouble.absent else "STALE")
    seen = f"last seen {duration(age)} ago"
    return Health(word, "error" if lost else "warning", (trouble.text, seen))


def _is_impaired(vdev: Vdev) -> bool:
    """Whether a vdev shows that its pool is degraded, whatever the pool's own state."""
    return vdev.state != "" and vdev.kind != "root" and vdev.vclass not in ("spare", "cache")


def _lost(pool: Pool) -> Iterator[str]:
    if pool.state == "SUSPENDED":
        yield "all I/O is suspended: reconnect the device, then clear"
    elif pool.message:
        yield pool.message


def _data_errors(pool: Pool) -> Iterator[str]:
    if pool.error_count:
        plural = "s" if pool.error_count != 1 else ""
        yield f"{pool.error_count} data error{plural}: files are damaged"
    elif pool.damaged:
        yield "data errors (number unknown): files are damaged"


def _devices(away: Iterable[Vdev]) -> Iterator[str]:
    leaves = [v for v in away if not v.children and not v.resilvering]
    gone = [v for v in leaves if v.kind != "root" and v.vclass != "spare"]
    for vdev in sorted(gone, key=lambda v: v.state in MILDER):
        why = vdev.note.partition("  ")[0]
        detail = f" ({why.strip('()')})" if why and not _UPKEEP.match(why) else ""
        yield f"{vdev.name} {vdev.state}{detail}"


def _counters(every: Iterable[Vdev]) -> Iterator[str]:
    """Devices with errors since the last clear, the most first: ``bay03: 12 checksum errors``."""
    noisy = [v for v in every if not v.children and any(v.errors[:3])]
    for leaf in sorted(noisy, key=lambda v: -v.errors.total):
        read, write, cksum, _ = leaf.errors
        counts = ((read, "read"), (write, "write"), (cksum, "checksum"))
        said = ", ".join(f"{size(count)} {word}" for count, word in counts if count)
        yield f"{leaf.name}: {said} error{'s' if leaf.errors.total > 1 else ''}"
