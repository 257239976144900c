"""The error counters of every device over the last hour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from zconsole.diagnosis.device_errors.faults import Deltas, DeviceFault, judged
from zconsole.pool.model import ErrorCounters, Event, Scan
from zconsole.pool.topology import Placed

HOUR = 3600.0
KEPT = 200
"""Stored changes of one device's counters."""
AFTER = 120.0
"""Seconds within which a scan restart is attributed to a device that came or went."""
LATE = 5.0
"""Seconds after a scan's end in which its last errors are seen."""
HERE = ("ONLINE", "DEGRADED")
STANDS_OUT = 3
"""So many times the checksum errors of any sibling are a device's own: ZFS counts one for every
device that a block without a good copy lies on (vdev_raidz.c, vdev_mirror.c)."""


class _Device:
    """The past of one device; ``changes`` are new errors as (since, t, r, w, c, slow).

    Lists, as nearly all stay empty: an empty deque takes fourteen times the memory.
    """

    __slots__ = ("back", "changes", "counters", "filling", "left", "name", "state")

    def __init__(self, name: str, counters: ErrorCounters, state: str) -> None:
        self.name = name
        self.counters = counters
        self.state = state
        self.changes: list[tuple[float, ...]] = []
        self.left: list[float] = []
        self.back: list[float] = []
        self.filling = float("-inf")
        """When it last had errors while it was being filled."""


class DeviceErrorTracker:
    """Takes every sample's tree; reports devices with new errors or disconnects within the hour."""

    def __init__(self) -> None:
        self._devices: dict[str, _Device] = {}
        self._pushed: float | None = None

    def push(self, t: float, tree: Mapping[str, Placed]) -> None:
        """Take in the counters and states of a sample taken at ``t`` (epoch seconds)."""
        since, self._pushed = self._pushed or t, t
        for key, place in tree.items():
            if place.vdev.children:
                continue
            device = self._devices.get(key)
            if device is None:
                self._devices[key] = _Device(place.vdev.name, place.vdev.errors, place.vdev.state)
                continue
            if place.vdev.errors != device.counters:
                self._count(since, t, device, place.vdev.errors)
                if _is_filled(place, tree):
                    device.filling = t
            if place.vdev.state != device.state:
                self._notice(t, device, place.vdev.state)
        for key in self._devices.keys() - tree.keys():
            del self._devices[key]

    def _count(self, since: float, t: float, device: _Device, now: ErrorCounters) -> None:
        old, device.counters = device.counters, now
        pairs = zip(old, now, strict=True)
        new = [max(0, (b or 0) - (a or 0)) if a is not None else 0 for a, b in pairs]
        if any(new):
            device.changes = [*device.changes, (since, t, *new)][-KEPT:]

    def _notice(self, t: float, device: _Device, state: str) -> None:
        was, device.state = device.state, state
        if was in HERE and state not in (*HERE, "OFFLINE"):
            device.left = [*device.left, t][-KEPT:]
        elif was not in HERE and state in HERE and device.left:
            if was == "FAULTED":  # zpool clear brings it back: it need not have been away
                device.left.pop()
            else:
                device.back = [*device.back, t][-KEPT:]

    def faults(
        self,
        t: float,
        tree: Mapping[str, Placed],
        events: Sequence[Event],
        scans: Sequence[Scan] = (),
    ) -> tuple[DeviceFault, ...]:
        """The devices with new errors or flaps in the hour before ``t``, worst first."""
        since = t - HOUR
        restarts = [e.t for e in events if e.name.endswith("_restart") and e.t >= since]
        found = [
            _fault(key, tree[key].vdev.name, device, since, restarts)
            for key, device in self._devices.items()
            if (device.changes or device.left) and key in tree and _has_fault(device, since)
        ]
        rebuilt = {s.vdev for s in scans if s.function == "rebuild" and (s.end or t) >= since}
        above = {x.key: top for x in found if (top := tree[x.key].top) is not None}
        found = [judged(self._compared(x, found, above, since)) for x in found]
        tops = {key: top for key, top in above.items() if tree[top].vdev.name in rebuilt}
        found = list(_origins(found, tops))
        return tuple(sorted(found, key=lambda x: (-x.flaps, -x.deltas.total, x.name)))

    def _compared(
        self,
        fault: DeviceFault,
        found: Sequence[DeviceFault],
        tops: Mapping[str, str],
        since: float,
    ) -> DeviceFault:
        """The fault, with whether its checksum errors are shared: see Deltas.is_shared."""
        siblings = (x for x in found if x is not fault and tops.get(x.key) == tops.get(fault.key))
        most = max((x.deltas.cksum for x in siblings), default=0)
        filled = self._devices[fault.key].filling >= since
        shared = filled or fault.deltas.cksum < STANDS_OUT * most
        return fault._replace(deltas=fault.deltas._replace(is_shared=shared))

    def damaged(self, scans: Sequence[Scan]) -> Iterator[tuple[str, int]]:
        """Devices that returned damaged data to the resilver that ended last, and how often.

        Devices that came back meanwhile are left out: what they hold is old, and is repaired. A
        later scrub settles it.
        """
        last = next((s for s in scans if s.function == "resilver" and s.state == "finished"), None)
        if last is None or last.start is None or last.end is None:
            return
        if any(s.function == "scrub" and (s.start or 0.0) >= last.end for s in scans):
            return
        for device in self._devices.values():
            during = [x for x in device.changes if last.start <= x[1] <= last.end + LATE]
            count = int(sum(change[4] for change in during))
            if count and not any(t >= last.start for t in device.left):
                yield device.name, count


def _origins(found: Sequence[DeviceFault], tops: Mapping[str, str]) -> Iterator[DeviceFault]:
    """Without the devices whose errors may be copies of another's, which names them.

    A rebuild copies without checking (module/zfs/vdev_rebuild.c): what one device returns damaged
    is counted later for those it was written to. ``tops``: the rebuilt top-level vdev, by key.
    """
    for one in found:
        near = [x for x in found if x.key in tops and tops[x.key] == tops.get(one.key)]
        copies = tuple(x.name for x in near if _may_be_copied(x, one))
        if not any(_may_be_copied(one, x) for x in near):
            yield judged(one._replace(copied_to=copies)) if copies else one


def _may_be_copied(one: DeviceFault, source: DeviceFault) -> bool:
    own = one.flaps or one.gone or one.deltas.total > one.deltas.cksum
    return not own and 0 < 2 * one.deltas.cksum <= source.deltas.cksum


def _has_fault(device: _Device, since: float) -> bool:
    last = max([change[1] for change in device.changes[-1:]] + device.left[-1:])
    return last > 0 and last >= since


def _fault(
    key: str, name: str, device: _Device, since: float, restarts: list[float]
) -> DeviceFault:
    recent = [change for change in device.changes if change[1] >= since]
    read, write, cksum, slow = (int(sum(change[i] for change in recent)) for i in range(2, 6))
    seconds = recent[-1][1] - recent[0][0] if recent else 0.0
    deltas = Deltas(read, write, cksum, slow, max(1.0, seconds))
    back = [t for t in device.back if t >= since]
    moves = [*back, *(t for t in device.left if t >= since)]
    followed = sum(1 for restart in restarts if _follows(restart, moves))
    return DeviceFault(
        key=key,
        name=name,
        deltas=deltas,
        last=max([change[1] for change in recent] + moves),
        flaps=len(back),
        restarts=followed,
        gone=device.state not in (*HERE, "OFFLINE") and len(device.left) > len(device.back),
    )


def _is_filled(place: Placed, tree: Mapping[str, Placed]) -> bool:
    """Whether a device is being filled, or takes the place of another."""
    vdev, parent = place.vdev, tree.get(place.parent) if place.parent else None
    newcomer = (
        parent is not None
        and parent.vdev.kind == "replacing"
        and parent.vdev.children[0] is not vdev
    )
    return bool(vdev.resilvering or vdev.awaiting_resilver or vdev.unfilled) or newcomer


def _follows(restart: float, moves: Iterable[float]) -> bool:
    return any(-AFTER / 4 <= restart - move <= AFTER for move in moves)
