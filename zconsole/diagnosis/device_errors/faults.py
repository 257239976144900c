"""Devices with new errors over the last hour, and the signs of their cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from zconsole.pool.model import ErrorCounters, Event, Scan
from zconsole.pool.topology import Placed
from zconsole.units import counted, duration, percent


class SmartCounts(NamedTuple):
    """A device's own lifetime counts; None where it keeps none."""

    passed: bool | None = None
    """Its own overall verdict."""
    reallocated: int | None = None
    """Sectors it has replaced (ATA attribute 5, SCSI grown defects)."""
    pending: int | None = None
    """Sectors it cannot read now (197)."""
    uncorrectable: int | None = None
    """(198; NVMe media errors)."""
    crc: int | None = None
    """Transfers that arrived damaged: the link, not the disk (199)."""
    wear: float | None = None
    """Share of the writes that flash was built for, 1 and above is worn out."""
    spare: float | None = None
    """Share of its spare blocks that flash has left."""
    temperature: float | None = None
    """Degrees Celsius."""

    def words(self) -> str:
        """``passed, 0 reallocated, 3 pending``, as far as it is known."""
        verdict = () if self.passed is None else ("passed" if self.passed else "FAILS",)
        counts = (
            (self.reallocated, "reallocated"),
            (self.pending, "pending"),
            (self.uncorrectable, "uncorrectable"),
            (self.crc, "CRC errors"),
        )
        shares = ((self.wear, "worn"), (self.spare, "of its spare blocks left"))
        return ", ".join(
            (
                *verdict,
                *(f"{n} {word}" for n, word in counts if n is not None),
                *(f"{percent(share)} {word}" for share, word in shares if share is not None),
            )
        )


class Deltas(NamedTuple):
    """New errors of one device, which fell within ``seconds``."""

    read: int = 0
    write: int = 0
    cksum: int = 0
    slow: int = 0
    seconds: float = 3600.0
    is_shared: bool = False
    """Whether the checksum errors tell nothing of this device: its siblings have as many, as where
    no copy of a block is good, or it was being filled and never given the data."""

    @property
    def total(self) -> int:
        """Read, write and checksum errors together; slow I/Os are not errors."""
        return self.read + self.write + self.cksum


class ProbeResults(NamedTuple):
    """What the device and the kernel report."""

    smart: SmartCounts | None = None
    kernel: tuple[str, ...] = ()
    """The kernel's messages about it within the hour, newest last."""
    before: SmartCounts | None = None
    """Its counts when first asked: only counts that grew since are new."""

    @property
    def log(self) -> str:
        """The kernel's messages, a line each, in small letters."""
        return "\n".join(self.kernel).lower()


class DeviceFault(NamedTuple):
    """One device with new errors, or that disconnected."""

    key: str
    name: str
    deltas: Deltas
    last: float
    """Epoch seconds of the newest sign."""
    flaps: int = 0
    """How often it disconnected and returned within the hour."""
    restarts: int = 0
    """How many scan restarts followed it."""
    copied_to: tuple[str, ...] = ()
    """The devices to which a rebuild may have copied its damaged data, by name."""
    cause: str = "unclear"
    """``cable`` (link, power, port), ``disk`` or ``unclear``."""
    text: str = ""
    """In one line: the likely cause, and what was observed."""
    gone: bool = False
    """Whether it is still disconnected."""
    signs: ProbeResults | None = None
    """What the device and the kernel reported; None if not probed."""


def judge(
    deltas: Deltas, flaps: int = 0, signs: ProbeResults | None = None
) -> tuple[str, tuple[str, ...]]:
    """Cable or disk, and the signs; unclear where they contradict each other or are too few.

    A bad link damages transfers (CRC counts, checksum errors) and makes devices disconnect and
    return; a bad disk has unreadable sectors and becomes slow. Counts that grow while it is
    watched weigh twice as much as lifetime counts.
    """
    signs = signs or ProbeResults()
    link, medium = list(_link_signs(deltas, flaps, signs)), list(_disk_signs(deltas, signs))
    if medium and deltas.slow:  # slow I/Os alone may come from load, link or disk
        medium.append(_Sign(counted(deltas.slow, "slow I/O")))
    for cause, own, other in (("cable", link, medium), ("disk", medium, link)):
        if own and (not other or _weight(own) > _weight(other) + 1):
            return cause, tuple(sign.words for sign in own)
    return "unclear", tuple(sign.words for sign in (*link, *medium))


class _Sign(NamedTuple):
    """What speaks for a cause."""

    words: str
    weight: int = 1


def _weight(signs: Sequence[_Sign]) -> int:
    return sum(sign.weight for sign in signs)


FAR_MORE = 3
"""Times as many errors of one kind as of the other that tell a link from a disk: a damaged transfer
fails its checksum, an unreadable sector is an error of the read."""


def _link_signs(deltas: Deltas, flaps: int, signs: ProbeResults) -> Iterator[_Sign]:
    if flaps:
        yield _Sign(returned(flaps))
    yield from _counted(signs, "crc", "CRC errors on its link")
    lone = deltas.cksum > FAR_MORE * max(1, deltas.read) and not deltas.is_shared
    if lone and not (signs.smart and signs.smart.pending):
        yield _Sign("it returns damaged data without an error")
    if any(word in signs.log for word in LINK_WORDS):
        yield _Sign("the kernel resets its link")


def _disk_signs(deltas: Deltas, signs: ProbeResults) -> Iterator[_Sign]:
    if signs.smart is not None and signs.smart.passed is False:
        yield _Sign("SMART reports a failing disk")
    yield from _counted(signs, "pending", "unreadable sectors")
    yield from _counted(signs, "uncorrectable", "uncorrectable errors")
    yield from _counted(signs, "reallocated", "reallocated sectors")
    if deltas.read > FAR_MORE * max(1, deltas.cksum):
        yield _Sign("the disk itself reports read errors")
    if any(word in signs.log for word in DISK_WORDS):
        yield _Sign("the kernel reports bad sectors")


def _counted(signs: ProbeResults, name: str, words: str) -> Iterator[_Sign]:
    """A count of SMART above 0, and whether it grows."""
    now, before = getattr(signs.smart, name, None), getattr(signs.before, name, None)
    if now and before is not None and now > before:
        yield _Sign(f"{now} {words}, {now - before} new", weight=2)
    elif now:
        yield _Sign(f"{now} {words}")


LINK_WORDS = (
    "link is slow",
    "hard resetting link",
    "softreset failed",
    "sata link down",
    "icrc",
    "badcrc",
    "interface fatal error",
    "transport error",
    "device offlined",
    "link down",
    "usb disconnect",
)
"""libata, SCSI and USB messages about the link to a device (drivers/ata/libata-{core,eh}.c)."""

DISK_WORDS = ("medium error", "unrecovered read error", "critical medium", "unc ", "{ unc }")
"""Kernel messages about a bad medium (drivers/scsi/constants.c, block/blk-core.c)."""


SUSPECTS = {
    "cable": "likely cable, port or power",
    "disk": "likely the disk itself",
    "unclear": "cable or disk: unclear",
}


def returned(flaps: int) -> str:
    """How often a device disconnected, in words."""
    return f"disconnected and returned {flaps} times" if flaps > 1 else "disconnected, returned"


def judged(fault: DeviceFault, signs: ProbeResults | None = None) -> DeviceFault:
    """The fault with its likely cause and its text, from the counts and the probe results.

    The text: ``sdc: likely cable, port or power; 40 checksum errors in 1h00m; the scan
    restarted``. What was counted is not repeated as a sign.
    """
    cause, found = judge(fault.deltas, fault.flaps, signs)
    parts = list(_counts(fault))
    more = [sign for sign in found if sign not in parts]
    if found:
        parts.insert(0, SUSPECTS[cause])
    text = f"{fault.name}: {'; '.join(parts)}" + (f" ({'; '.join(more)})" if more else "")
    return fault._replace(cause=cause, text=text, signs=signs)


def _counts(fault: DeviceFault) -> Iterator[str]:
    deltas, flaps = fault.deltas, fault.flaps
    counts = ((deltas.read, "read"), (deltas.write, "write"), (deltas.cksum, "checksum"))
    if errors := ", ".join(f"{count} {word}" for count, word in counts if count):
        noun = "error" if sum(count for count, _ in counts) == 1 else "errors"
        yield f"{errors} {noun} in {duration(deltas.seconds)}"
    if deltas.slow:
        yield counted(deltas.slow, "slow I/O")
    if flaps:
        yield returned(flaps)
    if fault.gone:
        yield "disconnected again" if flaps else "disconnected"
    if fault.copied_to:
        yield f"the rebuild may have copied damaged data to {', '.join(fault.copied_to)}"
    if restarts := fault.restarts:
        yield f"the scan restarted {restarts} times" if restarts > 1 else "the scan restarted"


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
        self.quiet_since: float | None = None
        """When the newest errors or disconnect were seen (epoch seconds), else the first sample."""

    def shift(self, seconds: float) -> None:
        """Date all that is remembered anew: the clock was set by so many seconds."""
        self._pushed = self._pushed and self._pushed + seconds
        self.quiet_since = self.quiet_since and self.quiet_since + seconds
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
        quiet = self.quiet_since or t
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
            if device.changes or device.left:
                quiet = max(quiet, device.last)
        self.quiet_since = quiet

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
