"""The error counters of every device over the last hour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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
AWAY = ("REMOVED", "UNAVAIL")
"""It cannot be reached; one that is FAULTED can, and one that is OFFLINE was put so by hand."""
STANDS_OUT = 3
"""So many times the checksum errors of any sibling are a device's own: ZFS counts one for every
device that a block without a good copy lies on (vdev_raidz.c, vdev_mirror.c)."""


class _Change(NamedTuple):
    """New errors of a device, seen between two samples (epoch seconds)."""

    since: float
    t: float
    new: Sequence[int]
    """Read, write, checksum errors, and slow I/Os."""


@dataclass(slots=True)
class _Device:
    """The past of one device.

    Lists, as nearly all stay empty: an empty deque takes fourteen times the memory.
    """

    name: str
    counters: ErrorCounters
    state: str
    guid: str | None = None
    changes: list[_Change] = field(default_factory=list)
    left: list[float] = field(default_factory=list)
    back: list[float] = field(default_factory=list)
    is_away: bool = False
    """Whether it left and is not back."""
    filling: float = float("-inf")
    """When it last had errors while it was being filled."""

    @property
    def last(self) -> float:
        """When it last had errors or left, which it must have."""
        return max([change.t for change in self.changes[-1:]] + self.left[-1:])

    def count(self, since: float, t: float, now: ErrorCounters) -> None:
        """Keep what was counted since the sample before."""
        pairs = zip(self.counters, now, strict=True)
        new = [max(0, (b or 0) - (a or 0)) if a is not None else 0 for a, b in pairs]
        self.counters = now
        if any(new):
            self.changes = [*self.changes, _Change(since, t, new)][-KEPT:]

    def notice(self, t: float, state: str) -> None:
        """Keep that it left or came back."""
        was, self.state = self.state, state
        if was in (*HERE, "FAULTED") and state in AWAY and not self.is_away:
            self.left, self.is_away = [*self.left, t][-KEPT:], True
        elif self.is_away and state in HERE:
            self.is_away = False
            if was == "FAULTED":  # zpool clear brings it back: it need not have been away
                self.left.pop()
            else:
                self.back = [*self.back, t][-KEPT:]

    def fault(self, key: str, name: str, since: float, restarts: Iterable[float]) -> DeviceFault:
        """All that happened to it since then."""
        recent = [change for change in self.changes if change.t >= since]
        seconds = recent[-1].t - recent[0].since if recent else 0.0
        read, write, cksum, slow = (sum(change.new[i] for change in recent) for i in range(4))
        back = [t for t in self.back if t >= since]
        moves = [*back, *(t for t in self.left if t >= since)]
        return DeviceFault(
            key=key,
            name=name,
            deltas=Deltas(read, write, cksum, slow, max(1.0, seconds)),
            last=max([change.t for change in recent] + moves),
            flaps=len(back),
            restarts=sum(
                any(-AFTER / 4 <= restart - move <= AFTER for move in moves) for restart in restarts
            ),
            gone=self.is_away and self.state != "OFFLINE",
        )


class DeviceErrorTracker:
    """Takes every sample's tree; reports devices with new errors or disconnects within the hour."""

    def __init__(self) -> None:
        self._devices: dict[str, _Device] = {}
        self._pushed: float | None = None

    def shift(self, seconds: float) -> None:
        """Date all that is remembered anew: the clock was set by so many seconds."""
        self._pushed = self._pushed and self._pushed + seconds
        for device in self._devices.values():
            device.changes = [
                change._replace(since=change.since + seconds, t=change.t + seconds)
                for change in device.changes
            ]
            device.left = [t + seconds for t in device.left]
            device.back = [t + seconds for t in device.back]
            device.filling += seconds

    def push(self, t: float, tree: Mapping[str, Placed]) -> None:
        """Take in the counters and states of a sample taken at ``t`` (epoch seconds)."""
        since, self._pushed = self._pushed or t, t
        lost = [self._devices.pop(key) for key in self._devices.keys() - tree.keys()]
        left = {device.name: device for device in lost}
        for key, place in tree.items():
            vdev = place.vdev
            if vdev.children:
                continue
            device = self._devices.get(key)
            if device is None:
                # A new disk that is called like the one it replaces comes behind that.
                device = left.pop(vdev.name.removesuffix("/old"), None)
                if device is None or None not in (device.guid, vdev.guid):
                    device = _Device(vdev.name, vdev.errors, vdev.state)
                # One of another source is known by name; its counters may be rounded otherwise.
                device.guid, device.counters = vdev.guid, vdev.errors
                self._devices[key] = device
            if vdev.errors != device.counters:
                device.count(since, t, vdev.errors)
                if _is_filled(place, tree):
                    device.filling = t
            if vdev.state != device.state:
                device.notice(t, vdev.state)

    def faults(
        self,
        t: float,
        tree: Mapping[str, Placed],
        events: Sequence[Event],
        scans: Sequence[Scan] = (),
    ) -> tuple[DeviceFault, ...]:
        """The devices with new errors or flaps in the hour before ``t``, worst first.

        A rebuild copies without checking (module/zfs/vdev_rebuild.c): what one device returns
        damaged is counted later for those it was written to. Errors that may be such copies are
        told with the device they came from.
        """
        since = t - HOUR
        restarts = [e.t for e in events if e.name.endswith("_restart") and e.t >= since]
        found = [
            device.fault(key, tree[key].vdev.name, since, restarts)
            for key, device in self._devices.items()
            if (device.changes or device.left) and device.last >= since and key in tree
        ]
        rebuilt = {s.vdev for s in scans if s.function == "rebuild" and (s.end or t) >= since}
        told = []
        for fault in found:
            top = tree[fault.key].top
            others = [x for x in found if x is not fault and tree[x.key].top == top]
            copied = others if top is not None and tree[top].vdev.name in rebuilt else []
            if any(_may_be_copied(fault, source) for source in copied):
                continue
            most = max((x.deltas.cksum for x in others), default=0)
            filled = self._devices[fault.key].filling >= since
            shared = filled or fault.deltas.cksum < STANDS_OUT * most
            copies = tuple(x.name for x in copied if _may_be_copied(x, fault))
            deltas = fault.deltas._replace(is_shared=shared)
            # Of one that left and was put OFFLINE by hand since, nothing is to be told.
            if deltas.total or deltas.slow or fault.flaps or fault.gone:
                told.append(judged(fault._replace(deltas=deltas, copied_to=copies)))
        return tuple(sorted(told, key=lambda x: (-x.flaps, -x.deltas.total, x.name)))

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
            during = [x for x in device.changes if last.start <= x.t <= last.end + LATE]
            count = sum(change.new[2] for change in during)
            if count and not any(t >= last.start for t in device.left):
                yield device.name, count


def _may_be_copied(one: DeviceFault, source: DeviceFault) -> bool:
    own = one.flaps or one.gone or one.deltas.total > one.deltas.cksum
    return not own and 0 < 2 * one.deltas.cksum <= source.deltas.cksum


def _is_filled(place: Placed, tree: Mapping[str, Placed]) -> bool:
    """Whether a device is being filled, or takes the place of another."""
    vdev, parent = place.vdev, tree.get(place.parent) if place.parent else None
    newcomer = (
        parent is not None
        and parent.vdev.kind == "replacing"
        and parent.vdev.children[0] is not vdev
    )
    return bool(vdev.resilvering or vdev.awaiting_resilver or vdev.unfilled) or newcomer
