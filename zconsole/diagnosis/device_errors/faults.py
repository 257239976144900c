"""Devices with new errors in the last hour, and evidence of the cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import ErrorCounters, Event, Placed, Scan
from zconsole.units import counted, duration, percent


class SmartCounts(NamedTuple):
    """Lifetime SMART counts of a device; None for a count that it does not keep."""

    passed: bool | None = None
    """Overall verdict of the device."""
    reallocated: int | None = None
    """Replaced sectors (ATA attribute 5, SCSI grown defects)."""
    pending: int | None = None
    """Sectors that can't be read now (ATA attribute 197)."""
    uncorrectable: int | None = None
    """Uncorrectable sectors (ATA attribute 198) or media errors (NVMe)."""
    crc: int | None = None
    """Transfers damaged on the link rather than by the disk (ATA attribute 199)."""
    wear: float | None = None
    """Share used of the writes that flash is rated for; 1 and above is worn out."""
    spare: float | None = None
    """Share left of the spare blocks of flash."""
    temperature: float | None = None
    """Degrees Celsius."""

    def words(self) -> str:
        """Return the known counts as text, such as ``passed, 0 reallocated, 3 pending``."""
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
    """New errors of one device, counted over ``seconds``."""

    read: int = 0
    write: int = 0
    cksum: int = 0
    slow: int = 0
    seconds: float = 3600.0
    is_shared: bool = False
    """Whether the checksum errors are no evidence against this device.

    Its siblings have as many, as when no copy of a block is good, or it was being filled and never
    received the data.
    """

    @property
    def own_cksum(self) -> int:
        """Checksum errors that are evidence against this device."""
        return 0 if self.is_shared else self.cksum

    @property
    def total(self) -> int:
        """Sum of read, write and checksum errors; slow I/Os are not errors."""
        return self.read + self.write + self.cksum


class ProbeResults(NamedTuple):
    """Reports on a device, from itself (SMART) and from the kernel."""

    smart: SmartCounts | None = None
    kernel: tuple[str, ...] = ()
    """Kernel messages about it, newest last: of the last hour, and since it last returned."""
    before: SmartCounts | None = None
    """Its counts when first probed: only an increase since then is new."""

    @property
    def log(self) -> str:
        """Kernel messages, one per line, in lower case."""
        return "\n".join(self.kernel).lower()


NAMED = 8
"""Most devices with one cause to name; the others are counted."""
HUBS = {
    "expander": "expander",
    "ata": "port multiplier",
    "host": "HBA port",
    "usb": "USB port",
    "enclosure": "enclosure",
}
"""Words for hubs by the beginnings of their names (``LeafDisk.hubs``, or ``enclosure`` and key)."""


class CommonCause(NamedTuple):
    """A hub behind which several devices began to have trouble within TOGETHER seconds."""

    hub: str
    """Its name: ``expander-0:1``."""
    since: float
    """When the first of them did (epoch seconds)."""
    devices: tuple[str, ...]
    """Their names, in the order in which they did."""

    @property
    def kind(self) -> str:
        """Word for the hub: ``expander``."""
        return HUBS[_hub_kind(self.hub)]

    @property
    def where(self) -> str:
        """The devices that have trouble: ``3 disks behind one expander``."""
        beside = "in" if self.kind == "enclosure" else "behind"
        return f"{len(self.devices)} disks {beside} one {self.kind}"

    @property
    def suspects(self) -> str:
        """What to look at instead of the disks."""
        return f"suspect cable, power or {self.kind}, not the disks"

    def text(self, since: str) -> str:
        """Return all of it in one line; ``since`` is the time in words."""
        names = ", ".join(self.devices[:NAMED])
        more = f" and {len(self.devices) - NAMED} more" if len(self.devices) > NAMED else ""
        return f"{self.where} since {since}: {self.suspects} ({names}{more})"


def _hub_kind(hub: str) -> str:
    return re.split(r"[\d-]", hub, maxsplit=1)[0]


class DeviceFault(NamedTuple):
    """A device that has new errors or has disconnected."""

    key: str
    name: str
    deltas: Deltas
    last: float
    """Time of the newest error or disconnect, epoch seconds."""
    flaps: int = 0
    """How often it disconnected and returned in the last hour."""
    returned_ago: float | None = None
    """Seconds since its last return, if errors have followed it without an hour's pause."""
    restarts: int = 0
    """Number of scan restarts that followed a disconnect or return."""
    copied_to: tuple[str, ...] = ()
    """Names of the devices to which a rebuild may have copied its damaged data."""
    cause: str = "unclear"
    """``cable`` (link, power, port), ``disk`` or ``unclear``."""
    text: str = ""
    """The likely cause and the observations, in one line."""
    gone: bool = False
    """Whether it is still disconnected."""
    signs: ProbeResults | None = None
    """Reports of the device and the kernel; None if not probed."""
    began: float = 0.0
    """Time of its first error or disconnect after an hour without any (epoch seconds)."""
    hubs: tuple[str, ...] = ()
    """Hubs that other devices may share, nearest first; () if unknown."""
    common: CommonCause | None = None
    """What it has in common with other devices that began when it did; None for nothing."""

    @property
    def label(self) -> str:
        """Label of its text: a device that only disconnected has no new errors."""
        return "new errors" if self.deltas.total else "trouble"

    @property
    def disconnects(self) -> str:
        """How often it disconnected and returned in the last hour, or when before; else empty."""
        if self.flaps:
            return returned(self.flaps)
        ago = self.returned_ago
        return "" if ago is None else f"{returned(1)} {duration(ago)} ago"

    @property
    def unsteady(self) -> str:
        """Why it calls for attention after it disconnected, and within which time it did."""
        lately = " in the last hour" if self.flaps == 1 else ""  # several name the hour themselves
        return f"{self.name}: {returned(self.flaps)}{lately}"


def likely_cause(
    deltas: Deltas,
    disconnects: str = "",
    signs: ProbeResults | None = None,
    gone: bool = False,
    shared: str = "",
) -> tuple[str, tuple[str, ...]]:
    """Return the likely cause (``cable``, ``disk`` or ``unclear``) and all evidence, its own first.

    A bad link damages transfers (CRC counts, checksum errors) and makes devices disconnect and
    return; a bad disk has unreadable sectors and becomes slow. A sign weighs 1; a count that grows
    while the device is watched 2, because lifetime counts may be old; and a failing verdict of
    SMART more than all signs of a link. The cause is unclear unless one side weighs 2 more.
    ``disconnects`` are told as in ``DeviceFault.disconnects``, and ``gone`` is as there. ``shared``
    tells of other devices that began to have trouble at the same time, behind the same hub.
    """
    signs = signs or ProbeResults()
    link = list(_link_signs(deltas, disconnects, signs))
    if shared:
        link.insert(0, _Sign(shared, COINCIDENCE))
    medium = list(_disk_signs(deltas, gone or bool(disconnects), signs))
    if medium and deltas.slow:  # slow I/Os alone may come from load, link or disk
        medium.append(_Sign(counted(deltas.slow, "slow I/O")))
    for cause, own, other in (("cable", link, medium), ("disk", medium, link)):
        if own and (not other or _weight(own) > _weight(other) + 1):
            return cause, tuple(sign.words for sign in (*own, *other))
    return "unclear", tuple(sign.words for sign in (*link, *medium))


class _Sign(NamedTuple):
    """A piece of evidence for a cause."""

    words: str
    weight: int = 1


def _weight(signs: Sequence[_Sign]) -> int:
    return sum(sign.weight for sign in signs)


FAILING = 12
"""Weight of a failing verdict of SMART: the disk has to be replaced, whatever else is wrong.

All signs of a link together weigh 10.
"""
COINCIDENCE = 5
"""Weight of trouble that others have, too: more than old counts and failed reads together."""
FAR_MORE = 3
"""Ratio between checksum and read errors that distinguishes a link from a disk.

A damaged transfer causes a checksum error, an unreadable sector a read error.
"""


def _link_signs(deltas: Deltas, disconnects: str, signs: ProbeResults) -> Iterator[_Sign]:
    if disconnects:
        yield _Sign(disconnects)
    yield from _counted(signs, "crc", "CRC error", " on its link")
    lone = deltas.own_cksum > FAR_MORE * max(1, deltas.read)
    if lone and not (signs.smart and signs.smart.pending):
        yield _Sign("it returns damaged data without an error")
    if any(word in signs.log for word in LINK_WORDS):
        yield _Sign("the kernel resets its link")


def _disk_signs(deltas: Deltas, was_away: bool, signs: ProbeResults) -> Iterator[_Sign]:
    """Yield the evidence for a bad disk: its own verdict and counts, then what others saw of it.

    Read errors are ZFS's count: they are no evidence if the device ``was_away``, as every read of a
    disconnected device fails.
    """
    if signs.smart is not None and signs.smart.passed is False:
        yield _Sign("SMART reports a failing disk", FAILING)
    # ATA attributes 197 and 198 count the same sectors: use the one that grows, else the first.
    unreadable = (
        *_counted(signs, "pending", "unreadable sector"),
        *_counted(signs, "uncorrectable", "uncorrectable error"),
    )
    yield from sorted(unreadable, key=lambda sign: -sign.weight)[:1]
    yield from _counted(signs, "reallocated", "reallocated sector")
    if deltas.read > FAR_MORE * max(1, deltas.own_cksum) and not was_away:
        yield _Sign("reads fail rather than return damaged data")
    if BAD_SECTOR.search(signs.log):
        yield _Sign("the kernel reports bad sectors")


def _counted(signs: ProbeResults, name: str, noun: str, where: str = "") -> Iterator[_Sign]:
    """Yield evidence for a SMART count above 0, with more weight if it has grown."""
    now, before = getattr(signs.smart, name, None), getattr(signs.before, name, None)
    if now and before is not None and now > before:
        yield _Sign(f"{counted(now, noun)}{where}, {now - before} new", weight=2)
    elif now:
        yield _Sign(f"{counted(now, noun)}{where}")


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
"""Phrases of libata, SCSI and USB messages about a link (drivers/ata/libata-{core,eh}.c)."""

BAD_SECTOR = re.compile(r"medium error|unrecovered read error|\bunc\b")
"""Kernel messages about a bad medium (drivers/scsi/constants.c, block/blk-core.c).

UNC (uncorrectable) is among the words that libata prints in braces after ``error:``.
"""


SUSPECTS = {
    "cable": "likely cable, port or power",
    "disk": "likely the disk itself",
    "unclear": "cable or disk: unclear",
}


def returned(flaps: int) -> str:
    """Return as text how often a device disconnected and returned within an hour."""
    return (
        f"disconnected and returned {flaps} times in 1 h" if flaps > 1 else "disconnected, returned"
    )


def with_cause(fault: DeviceFault, signs: ProbeResults | None = None) -> DeviceFault:
    """Complete a fault with its likely cause and text, from the counts and the probe results.

    The text looks like ``sdc: likely cable, port or power; 40 checksum errors in 1h00m; the scan
    restarted``. Evidence that the counts already mention is not repeated.
    """
    shared = fault.common.where if fault.common else ""
    cause, found = likely_cause(fault.deltas, fault.disconnects, signs, fault.gone, shared)
    parts = list(_counts(fault))
    more = [sign for sign in found if sign not in parts]
    if found:
        parts.insert(0, SUSPECTS[cause])
    text = f"{fault.name}: {'; '.join(parts)}" + (f" ({'; '.join(more)})" if more else "")
    return fault._replace(cause=cause, text=text, signs=signs)


TOGETHER = 120.0
"""Seconds within which devices begin to have trouble that has one cause.

A disk whose commands time out is given up after some attempts of 30 s each (SD_TIMEOUT,
drivers/scsi/sd.h), and not all disks are read at the same time.
"""


def with_common_causes(faults: Iterable[DeviceFault]) -> tuple[DeviceFault, ...]:
    """Judge faults together: devices behind one hub that began within TOGETHER have one cause.

    Of several hubs, it is the one with most devices, the nearest of these. A device whose own
    medium is bad by SMART or the kernel's log has its own cause, as has one that is only slow.
    Where hubs are unknown, each device is judged alone.
    """
    alone = [with_cause(fault._replace(common=None), fault.signs) for fault in faults]
    able = sorted(filter(_may_share, alone), key=lambda fault: fault.began)
    groups: dict[str, list[list[DeviceFault]]] = {}
    for fault in able:
        for hub in reversed(fault.hubs):
            behind = groups.setdefault(hub, [])
            if not behind or fault.began - behind[-1][0].began > TOGETHER:
                behind.append([])
            behind[-1].append(fault)
    # The largest comes last and counts, of equal ones the nearest.
    common: dict[str, CommonCause] = {}
    found = [(hub, group) for hub, behind in groups.items() for group in behind]
    for hub, group in sorted(found, key=lambda each: len(each[1])):
        if len(group) > 1:
            cause = CommonCause(hub, group[0].began, tuple(fault.name for fault in group))
            common |= dict.fromkeys((fault.key for fault in group), cause)
    return tuple(
        with_cause(fault._replace(common=common[fault.key]), fault.signs)
        if fault.key in common
        else fault
        for fault in alone
    )


def _may_share(fault: DeviceFault) -> bool:
    """Whether a fault has evidence that is its own, and none of a bad medium that is new."""
    deltas, signs = fault.deltas, fault.signs or ProbeResults()
    errors = deltas.read or deltas.write or deltas.own_cksum
    grown = any(sign.weight > 1 for sign in _disk_signs(Deltas(), was_away=True, signs=signs))
    evident = errors or fault.flaps or fault.gone
    return bool(evident) and not grown and not BAD_SECTOR.search(signs.log)


def _counts(fault: DeviceFault) -> Iterator[str]:
    deltas = fault.deltas
    counts = ((deltas.read, "read"), (deltas.write, "write"), (deltas.cksum, "checksum"))
    if errors := ", ".join(f"{count} {word}" for count, word in counts if count):
        noun = "error" if sum(count for count, _ in counts) == 1 else "errors"
        yield f"{errors} {noun} in {duration(deltas.seconds)}"
    if deltas.slow:
        yield counted(deltas.slow, "slow I/O")
    if fault.disconnects:
        yield fault.disconnects
    if fault.gone:
        yield "disconnected again" if fault.disconnects else "disconnected"
    if fault.copied_to:
        yield f"the rebuild may have copied damaged data to {', '.join(fault.copied_to)}"
    if restarts := fault.restarts:
        yield f"the scan restarted {restarts} times" if restarts > 1 else "the scan restarted"


HOUR = 3600.0
KEPT = 200
"""Most changes of one device's counters to store."""
AFTER = 120.0
"""Seconds within which a scan restart is attributed to a device's disconnect or return."""
LATE = 5.0
"""Seconds after a scan's end within which its last errors appear."""
HERE = ("ONLINE", "DEGRADED")
AWAY = ("REMOVED", "UNAVAIL")
"""States of an unreachable device; a FAULTED one can be reached, and OFFLINE is set by hand."""
DEAD = ("FAULTED", "UNAVAIL")
"""States of a failed device; a REMOVED one may only have been pulled."""
MANY_ERRORS = 10
"""Errors for which ZED takes a device out of use by default (zed's diagnosis engine)."""
MOST_FAILED = 100
"""Failed disks to remember, the newest ones."""
STANDS_OUT = 3
"""Ratio to the checksum errors of its siblings from which errors are attributed to a device.

For a block without a good copy, ZFS counts an error on every device that has a part of it
(vdev_raidz.c, vdev_mirror.c).
"""


class _Change(NamedTuple):
    """New errors of a device between two samples (times in epoch seconds)."""

    since: float
    t: float
    new: Sequence[int]
    """Read, write and checksum errors, and slow I/Os."""


@dataclass(slots=True)
class _Device:
    """History of one device.

    It uses lists, nearly all of which stay empty: an empty deque takes fourteen times the memory.
    """

    name: str
    counters: ErrorCounters
    state: str
    guid: str | None = None
    changes: list[_Change] = field(default_factory=list)
    left: list[float] = field(default_factory=list)
    back: list[float] = field(default_factory=list)
    is_away: bool = False
    """Whether it disconnected and has not returned."""
    filling: float = float("-inf")
    """When it last had errors while being filled (epoch seconds)."""
    serial: str = ""
    """Serial number of its disk; empty if unknown."""
    most: int = 0
    """Most errors that the pool counted for it at a time."""
    hubs: tuple[str, ...] = ()
    """As in ``DeviceFault``, of the disk with this serial number."""
    began: float = float("-inf")
    """As in ``DeviceFault``."""
    ailed: float = float("-inf")
    """When it last had errors or disconnected (epoch seconds)."""

    @property
    def failure(self) -> str:
        """How it failed: state and errors; empty if it did not."""
        if self.state not in DEAD and self.most < MANY_ERRORS:
            return ""
        errors = counted(self.most, "error") if self.most else ""
        return ", ".join(filter(None, (self.state if self.state in DEAD else "", errors)))

    @property
    def last(self) -> float:
        """When it last had errors or disconnected; valid only if it ever did."""
        return max([change.t for change in self.changes[-1:]] + self.left[-1:])

    def count(self, since: float, at: float, now: ErrorCounters) -> None:
        """Store the errors counted since the previous sample."""
        pairs = zip(self.counters, now, strict=True)
        new = [max(0, (b or 0) - (a or 0)) if a is not None else 0 for a, b in pairs]
        self.counters = now
        if any(new[:3]):
            self._ails(at)
            # Errors may be due to an earlier return unless there were none for an hour.
            errors = (change.t for change in self.changes if any(change.new[:3]))
            if at - max((*errors, *self.back[-1:]), default=at) > HOUR:
                self.back = []
        if any(new):
            self.changes = [*self.changes, _Change(since, at, new)][-KEPT:]

    def notice(self, at: float, state: str) -> None:
        """Store a disconnect or return, from a change of state."""
        was, self.state = self.state, state
        if was in (*HERE, "FAULTED") and state in AWAY and not self.is_away:
            self.left, self.is_away = [*self.left, at][-KEPT:], True
            self._ails(at)
        elif self.is_away and state in HERE:
            self.is_away = False
            # From FAULTED, zpool clear brought it back: it need not have been disconnected.
            if was == "FAULTED":
                self.left.pop()
            else:
                self.back = [*self.back, at][-KEPT:]

    def _ails(self, at: float) -> None:
        if at - self.ailed > HOUR:
            self.began = at
        self.ailed = at

    def fault(self, key: str, name: str, at: float, restarts: Iterable[float]) -> DeviceFault:
        """Summarize its history of the hour before ``at`` (epoch seconds)."""
        since = at - HOUR
        recent = [change for change in self.changes if change.t >= since]
        seconds = recent[-1].t - recent[0].since if recent else 0.0
        read, write, cksum, slow = (sum(change.new[i] for change in recent) for i in range(4))
        back = [t for t in self.back if t >= since]
        moves = [*back, *(t for t in self.left if t >= since)]
        has_errors = read + write + cksum > 0
        return DeviceFault(
            key=key,
            name=name,
            deltas=Deltas(read, write, cksum, slow, max(1.0, seconds)),
            last=max([change.t for change in recent] + moves),
            flaps=len(back),
            returned_ago=at - self.back[-1] if self.back and has_errors else None,
            restarts=sum(
                any(-AFTER / 4 <= restart - move <= AFTER for move in moves) for restart in restarts
            ),
            gone=self.is_away and self.state != "OFFLINE",
            began=self.began,
            hubs=self.hubs,
        )


class DeviceErrorTracker:
    """Tracks every sample's tree; reports devices with errors or disconnects in the last hour."""

    def __init__(self) -> None:
        self._devices: dict[str, _Device] = {}
        self._pushed: float | None = None
        self._first: float | None = None
        """Time of the first sample (epoch seconds)."""
        self.quiet_since: float | None = None
        """Time of the newest errors or disconnect, or of the first sample (epoch seconds)."""
        self.failed: dict[str, str] = {}
        """How disks failed that have left the pool since, by serial number."""

    def shift(self, seconds: float) -> None:
        """Shift all stored times, as the clock was set by this many seconds."""
        self._pushed = self._pushed and self._pushed + seconds
        self._first = self._first and self._first + seconds
        self.quiet_since = self.quiet_since and self.quiet_since + seconds
        for device in self._devices.values():
            device.changes = [
                change._replace(since=change.since + seconds, t=change.t + seconds)
                for change in device.changes
            ]
            device.left = [t + seconds for t in device.left]
            device.back = [t + seconds for t in device.back]
            device.filling += seconds
            device.began += seconds
            device.ailed += seconds

    def push(self, at: float, tree: Mapping[str, Placed]) -> None:
        """Add the counters and states of a sample taken at ``at`` (epoch seconds)."""
        since, self._pushed = self._pushed or at, at
        self._first = self._first or at
        quiet = self.quiet_since or at
        lost = [self._devices.pop(key) for key in self._devices.keys() - tree.keys()]
        left = {device.name: device for device in lost}
        for key, place in tree.items():
            vdev = place.vdev
            if vdev.children:
                continue
            device = self._devices.get(key)
            if device is None:
                # A new disk named like the one it replaces: the row of the old one (``/old``)
                # comes first, and takes over the history.
                device = left.pop(vdev.name.removesuffix("/old"), None)
                if device is None or None not in (device.guid, vdev.guid):
                    device = _Device(vdev.name, vdev.errors, vdev.state)
                # After a change of source, devices are matched by name, and counters may be
                # rounded differently.
                device.guid, device.counters = vdev.guid, vdev.errors
                device.most = max(device.most, vdev.errors.total)
                self._devices[key] = device
            # The path of a disk that is gone may be that of the new disk in its bay.
            if vdev.disk is not None and (vdev.state not in DEAD or not device.serial):
                device.serial, device.hubs = vdev.disk.serial, _hubs(vdev.disk)
            if vdev.errors != device.counters:
                device.count(since, at, vdev.errors)
                device.most = max(device.most, vdev.errors.total)
                if _is_filled(place, tree):
                    device.filling = at
            if vdev.state != device.state:
                device.notice(at, vdev.state)
            if device.changes or device.left:
                quiet = max(quiet, device.last)
        self.quiet_since = quiet
        here = {device.serial for device in self._devices.values()}
        failed = {old.serial: old.failure for old in lost if old.serial and old.failure}
        found = {**self.failed, **failed}  # frames have the one before
        kept = [each for each in found.items() if each[0] not in here]
        self.failed = dict(kept[-MOST_FAILED:])

    def minutes_watched(self, at: float) -> int:
        """Return for how many whole minutes of the hour before ``at`` it has had samples."""
        first = at if self._first is None else self._first
        return int(min(HOUR, max(0.0, at - first)) // 60)

    def faults(
        self,
        at: float,
        tree: Mapping[str, Placed],
        events: Sequence[Event],
        scans: Sequence[Scan] = (),
    ) -> tuple[DeviceFault, ...]:
        """Return the devices with new errors or disconnects in the hour before ``at``, worst first.

        A rebuild copies without verifying checksums (module/zfs/vdev_rebuild.c): damaged data from
        one device later causes errors on the devices it was written to. Errors that may be such
        copies are reported with the device that they came from.
        """
        since = at - HOUR
        restarts = [e.t for e in events if e.name.endswith("_restart") and e.t >= since]
        found = [
            device.fault(key, tree[key].vdev.name, at, restarts)
            for key, device in self._devices.items()
            if (device.changes or device.left) and device.last >= since and key in tree
        ]
        rebuilt = {s.vdev for s in scans if s.function == "rebuild" and (s.end or at) >= since}
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
            # A device that only disconnected and was then set OFFLINE by hand is not reported.
            if deltas.total or deltas.slow or fault.flaps or fault.gone:
                told.append(fault._replace(deltas=deltas, copied_to=copies))
        judged = with_common_causes(told)
        return tuple(sorted(judged, key=lambda x: (-x.flaps, -x.deltas.total, x.name)))

    def damaged(self, scans: Sequence[Scan]) -> Iterator[tuple[str, int]]:
        """Yield devices that returned damaged data to the last finished resilver, and how often.

        Devices that disconnected and came back are left out: their data is old and gets repaired.
        Nothing after a later scrub, which has repaired the rest.
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


def _hubs(disk: LeafDisk) -> tuple[str, ...]:
    """Return the hubs of a disk whose kind is known, nearest first."""
    enclosure = (f"enclosure-{disk.enclosure}",) if disk.enclosure else ()
    found = (*filter(None, disk.hubs.split(", ")), *enclosure)
    return tuple(hub for hub in found if _hub_kind(hub) in HUBS)


def _may_be_copied(one: DeviceFault, source: DeviceFault) -> bool:
    # A copy causes checksum errors only, and far fewer than its source had.
    own = one.disconnects or one.gone or one.deltas.total > one.deltas.cksum
    return not own and 0 < 2 * one.deltas.cksum <= source.deltas.cksum


def _is_filled(place: Placed, tree: Mapping[str, Placed]) -> bool:
    """Whether a device is being filled, or replaces another."""
    vdev, parent = place.vdev, tree.get(place.parent) if place.parent else None
    newcomer = (
        parent is not None
        and parent.vdev.kind == "replacing"
        and parent.vdev.children[0] is not vdev
    )
    return bool(vdev.resilvering or vdev.awaiting_resilver or vdev.unfilled) or newcomer
