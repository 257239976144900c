"""Rules that find the limit of a running scan; the first rule that applies wins.

The table RULES, at the end, has a cause, its signs, its text and a suggestion per row. A rule comes
before those whose limit would look the same: a frozen scan, disks without measurements, a disk that
does not answer, scanning metadata, the processor, one disk that the others wait for, queues that
are kept short, a shingled new disk, any new disk, a low tunable, applications, a shared link, slow
disks, memory, seeks, disks at their best rate, and finally idle disks. If nothing is clear, the
limit is "unclear" rather than a guess. Thresholds are defined above the signs that use them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from zconsole.diagnosis.bottleneck import advice
from zconsole.diagnosis.bottleneck.evidence import (
    NO_DISK,
    STREAMED,
    TRICKLE,
    Disk,
    Evidence,
    known_median,
)
from zconsole.diagnosis.bottleneck.finding import TOO_LITTLE, Figure, Suggestion, Verdict
from zconsole.pool.model import NOTHING
from zconsole.units import duration, latency, percent, size

LEAST_SECONDS = 5.0
"""Seconds to watch a scan before judging it: at least a txg (zfs_txg_timeout)."""
SATURATED = 0.85
"""Busy share from which a disk is at its limit.

In a user's report, a new disk that everything waited for was 85 % busy, the others 20 %.
"""
IDLE = 0.6
"""Busy share below which a disk surely has capacity left."""
EVEN_LOAD = 0.08
"""Most variation in the rate of a shared link; disks that seek vary more."""
FLASH = 0.001
"""Seconds per request below which a disk must be flash.

Flash serves many requests in parallel: being always busy does not mean that it is at its limit.
"""


class Signs(NamedTuple):
    """Signs of a limit."""

    sure: float
    """Confidence, 0…1: below 0.5 the console says "perhaps"; 0 if nothing is clear."""
    figures: Mapping[str, float]
    """Values for ``Verdict.figures``."""
    disk: Disk = NO_DISK
    """The disk that is the cause."""
    details: Mapping[str, float | str] = NOTHING
    """Further values for the text."""


class LimitRule(NamedTuple):
    """A row of RULES: a cause, its signs, its text and a suggestion."""

    cause: str
    signs: Callable[[Evidence], Signs | None]
    words: list[str]
    """Parts of the text, formatted with ``disk``, ``figures`` and ``details``, as in ``{busy:%}``.

    A part is left out if one of its values is missing.
    """
    suggest: Callable[[Evidence, Disk], Suggestion] = advice.says("")


def judge(seen: Evidence) -> Verdict | None:
    """Return the limit of a scan; None if it is not running."""
    if seen.scan.state != "running":
        return None
    if seen.seconds < LEAST_SECONDS or not seen.disks:
        return TOO_LITTLE
    found = ((rule, signs) for rule in RULES if (signs := rule.signs(seen)) is not None)
    rule, signs = next(found)
    told = {"disk": signs.disk.name, **signs.figures, **signs.details}
    told = {key: value if isinstance(value, str) else Figure(value) for key, value in told.items()}
    text = ""
    for part in rule.words:
        with suppress(KeyError):
            text += part.format(**told)
    suggestion = rule.suggest(seen, signs.disk)
    return Verdict(rule.cause, text, signs.figures, signs.sure, suggestion, signs.disk.name)


def _frozen(seen: Evidence) -> Signs | None:
    """Detect the tunable that freezes scans, whatever else is going on."""
    frozen = seen.tunables.get(advice.FREEZE)
    return Signs(0.95, {"busy": seen.busiest}) if frozen else None


def _unmeasured(seen: Evidence) -> Signs | None:
    """Detect disks without load measurements, which must not be taken for idle ones."""
    unknown = (d.rates for d in seen.disks if d.busy is None)
    return Signs(0.0, {}) if any((r.read_ops, r.write_ops) != (0, 0) for r in unknown) else None


ANSWERS = 0.5
"""Requests/s below which a busy disk counts as stuck; one that only seeks completes 100."""


def _hangs(seen: Evidence, is_new: bool) -> Signs | None:
    """Detect a disk that has requests in flight but completes none, while everything waits for it.

    Linux 5.0 to about 5.17 updates the busy time only when a request begins or ends
    (update_io_ticks, block/blk-core.c): a stuck disk looks idle, except for ZFS's own queues.
    """
    silent = [
        d
        for d in seen.disks
        if ((d.busy or 0.0) >= SATURATED or d.past.stuck >= LEAST_SECONDS)
        and d.requests < ANSWERS
        and d.rate <= TRICKLE
    ]
    others = [d.busy for d in seen.disks if d not in silent]
    if len(silent) != 1 or not others or known_median(others) >= IDLE or silent[0].target != is_new:
        return None
    disk = silent[0]
    figures = {
        "busy": disk.busy or 0.0,
        "others_busy": known_median(others),
        "answers": disk.requests,
    }
    looks_idle = figures["busy"] < SATURATED
    return Signs(0.9, figures, disk, {"sent": disk.in_flight} if looks_idle else NOTHING)


def _alternating(seen: Evidence) -> Signs | None:
    """Detect that scanning stops whenever sort memory is full (dsl_scan_should_clear)."""
    return _memory(seen, 0.8) if _walks(seen) and seen.cycles.limited else None


def _walks(seen: Evidence) -> Signs | None:
    """Detect a scan of metadata, unless a dying disk is the reason that it takes long."""
    walking = seen.stage == "scanning" and seen.scan.function != "rebuild" and seen.scan.two_stage
    if not walking:
        return None
    slow = _straggles(seen) or _all_slow(seen)
    if slow is not None and _per_mib(slow.disk, slow.disk.service) >= SLOW_REQUEST:
        return None
    return Signs(0.9, {"walked": seen.walked or 0.0})


PROCESSOR = 0.9
"""Busy share of all processors together from which a scan's threads have to wait."""


def _processor(seen: Evidence) -> Signs | None:
    """Detect a fully used processor while the disks have capacity left."""
    # A rotating disk at its limit would hold the scan up even with an idle processor.
    if seen.cpu is None or seen.cpu < PROCESSOR or any(map(_is_at_limit, seen.disks)):
        return None
    return Signs(0.9, {"cpu": seen.cpu, "busy": seen.busiest}, details=_at_most(seen))


def _is_flash(disk: Disk) -> bool:
    return disk.rates.latency is not None and disk.rates.latency < FLASH


def _is_at_limit(disk: Disk) -> bool:
    return (disk.busy or 0.0) >= SATURATED and not _is_flash(disk)


def _at_most(seen: Evidence) -> dict[str, float | str]:
    """Return how busy the busiest disk is, for the text, if that shows capacity left."""
    return {"at_most": seen.busiest} if seen.busiest < SATURATED else {}


STRAGGLING = 1.4
"""Latency of a slow disk, in multiples of its siblings'."""
STRAGGLING_GAP = 0.15
"""Least difference in busy share between a slow disk and its siblings."""
PAIR_GAP = 0.5
"""Least difference to an only sibling: either of the two may be the unusual one."""


def _straggles(seen: Evidence) -> Signs | None:
    """Detect a source that is much busier than its siblings, with a higher latency."""
    tops: dict[str, list[Disk]] = {}
    for disk in seen.sources:
        tops.setdefault(disk.top, []).append(disk)
    for disk in sorted(seen.sources, key=lambda d: -(d.busy or 0.0)):
        others = [d for d in tops[disk.top] if d is not disk]
        busy, usual = disk.busy or 0.0, known_median(d.busy for d in others)
        own, wait = disk.rates.latency, known_median(d.rates.latency for d in others)
        gap = STRAGGLING_GAP if len(others) > 1 else PAIR_GAP
        slower = (not wait or (own or 0.0) > STRAGGLING * wait) and not _is_flash(disk)
        if others and slower and busy >= SATURATED and busy > usual + gap:
            figures = {"busy": busy, "others_busy": usual, "rate": disk.rate}
            figures |= {} if own is None else {"latency": own, "others_latency": wait}
            return Signs(0.95 if busy > 2 * usual else 0.8, figures, disk)
    return None


WAITING = 8.0
"""Waiting requests from which few in flight mean a limit on the queue."""
SLOW_REQUEST = 0.05
"""Device seconds per request, and per MiB of a larger one, that no working disk needs.

That is longer than any seek, and 21 MB/s. ZFS sends up to 16 MiB at once (recordsize).
"""
MIB = 1 << 20


def _per_mib(disk: Disk, seconds: float | None) -> float:
    """Return the seconds per request, or per MiB of a larger one; 0 if unknown."""
    return (seconds or 0.0) / max(1.0, (disk.request or 0.0) / MIB)


AT_WORK = 0.1
"""Busy share up to which a disk being filled has too little work to judge its queue."""


def _few_writes(seen: Evidence) -> Signs | None:
    """Detect that few requests are sent to the disk being filled, though more wait and it has time.

    A rotating disk that is busy most of the time may be at its own limit, whatever waits for it.
    So may a slow one: the kernel adds to the busy time when a request ends, so a disk whose writes
    take half a second looks idle in between.
    """
    disk = _busiest_new(seen)
    busy = disk.busy or 0.0
    if disk.pending < WAITING or busy <= AT_WORK or _is_at_limit(disk):
        return None
    if _per_mib(disk, disk.rates.latency) >= SLOW_REQUEST:
        return None
    figures = {"pending": disk.pending, "in_flight": disk.in_flight, "busy": busy}
    details = {"each": latency(disk.rates.latency, "-"), "name": disk.name}
    return Signs(0.8 if busy < SATURATED else 0.6, figures, details=details)


def _busiest_new(seen: Evidence) -> Disk:
    return max(seen.targets, key=lambda disk: disk.busy or 0.0, default=NO_DISK)


GAP = 0.12
"""Least difference in busy share between a disk being filled and the sources."""


def _filled(seen: Evidence) -> Signs | None:
    """Detect that the disk being filled is saturated, and the sources wait for it."""
    disk, usual = _busiest_new(seen), seen.busy
    busy = disk.busy or 0.0
    if busy < SATURATED or busy < usual + GAP or disk.rate <= 0:
        return None
    figures = {"write_rate": disk.rate, "busy": busy, "others_busy": usual}
    if disk.request:
        figures["request_bytes"] = disk.request
    count = len(seen.targets)
    which = "the new disk" if count == 1 else f"the {count} new disks, first"
    # Flash may be always busy and still have capacity.
    sure = 0.4 if _is_flash(disk) else 0.95 if busy - usual > 0.3 else 0.8
    return Signs(sure, figures, disk, {"which": which})


COLLAPSE = 0.4
"""Share of its best write rate below which a disk has slowed down."""
UNSTEADY = 0.15
"""Variation of write rates from which they are unsteady: a throttle would slow them evenly."""
SEEK = 0.025
"""Longest seek in device seconds: across the whole disk, and one rotation."""


def _collapsed(seen: Evidence) -> Signs | None:
    """Detect a shingled disk: it writes slowly and unsteadily once its cache is full."""
    filled = _filled(seen)
    if filled is None:
        return None
    disk = filled.disk
    best, unsteady = disk.past.seen_write, disk.past.unsteady
    if disk.rate >= COLLAPSE * best or unsteady < UNSTEADY:
        return None
    if (disk.service or 0.0) < SEEK + (disk.request or 0.0) / best:
        return None  # seeks alone could make any disk this slow
    figures = {"write_rate": disk.rate, "best_write_rate": best, "busy": disk.busy or 0.0}
    figures |= {"unsteady": unsteady, "others_busy": seen.busy}
    return Signs(0.85, figures, disk)


OTHERS = 0.33
"""Share of applications in the requests in flight from which they are the limit."""
IN_USE = 0.3
"""Busy share from which the requests of a source are considered."""
CONTENDED = 0.4
"""Busy share of the considered sources below which scan and applications both have capacity."""


def _applications(seen: Evidence) -> Signs | None:
    """Detect that applications occupy the disks that the scan reads from."""
    disks = [d for d in seen.sources if (d.busy or 0.0) > IN_USE]
    share, busy = known_median(d.mean_app_share for d in disks), known_median(d.busy for d in disks)
    if busy < CONTENDED or min(share, known_median(d.app_share for d in disks)) < OTHERS:
        return None
    # Samples may miss the few requests of a slow scan: don't say "100 %" while it progresses.
    nearly = share > 0.95 and seen.rate > 0
    details: dict[str, float | str] = {"part": "nearly all" if nearly else percent(share)}
    if seen.foreground_writes > advice.FEW_WRITES:
        details["writes"] = seen.foreground_writes
    figures = {"others": share, "busy": busy, "other_writes": seen.foreground_writes}
    return Signs(0.8, figures, details=details)


def _held_back(seen: Evidence) -> Signs | None:
    """Detect that a tunable, set below its default, is the limit rather than the disks.

    The disks then have capacity left, or it is applications that use it, because the tunable makes
    the scan give way to them. OpenZFS before 0.8 is left out: there scans give way by default.
    """
    held = None if seen.version < advice.FIRST_SORTED else advice.lowered_tunable(seen)
    others = _applications(seen)
    if held is None or (others is None and any(map(_is_at_limit, seen.disks))):
        return None
    details = {"tunable": held.name, "value": str(held.value), **_at_most(seen)}
    details["default"] = str(held.release.value)
    sure = 0.9 if seen.busiest < SATURATED else 0.6
    if others is not None:
        sure, details["part"] = 0.8, others.details["part"]
    return Signs(sure, {"busy": seen.busiest}, details=details)


MANY = 4
"""Least number of disks whose equal rates indicate a shared limit rather than chance."""
EVEN = 1.35
"""Most that the fastest disk behind one link transfers, in multiples of the slowest."""
ALONE = 0.65
"""Share of its rate when fewer disks were active, below which a disk is held back now."""
FLAT = 0.85
"""Share of the highest total rate of all devices from which they are at their joint limit."""
SHORT = 1.25
"""Least ratio of the sum of the disks' best rates to the highest total rate observed."""


def _crowded(seen: Evidence) -> Signs | None:
    """Detect a shared link: disks are all busy and evenly slow, but were faster when fewer worked.

    Requests in flight count as busy (/proc/diskstats), so a disk that waits for the link looks
    like a working one. Only the total rate, the same for any number of disks, shows the link.
    """
    moving, load = [disk for disk in seen.disks if disk.rate > TRICKLE], seen.load
    rates = [disk.rate for disk in moving]
    if len(rates) < MANY or max(rates) > EVEN * min(rates):
        return None
    faster = [d for d in moving if not d.target and d.rate < ALONE * d.past.seen_read]
    flat = load.now > FLAT * load.most and load.unsteady < EVEN_LOAD
    able = sum(max(d.rate, d.past.seen_read) for d in moving)
    full = known_median(d.busy for d in moving) >= SATURATED
    if not full or len(faster) < MANY or not flat or able < SHORT * load.most:
        return None
    figures = {"rate": sum(rates), "disks": float(len(rates)), "busy": seen.busiest}
    figures["alone"] = known_median(d.past.seen_read for d in faster)
    figures["latency"] = known_median(d.rates.latency for d in moving)
    details: dict[str, float | str] = {"each": sum(rates) / len(rates), "faster": str(len(faster))}
    return Signs(0.8, figures, details=details)


def _all_slow(seen: Evidence) -> Signs | None:
    """Detect that the sources need longer than any seek: failing or throttled disks."""
    known = [d for d in seen.sources if d.service is not None]
    usual = known_median(_per_mib(d, d.service) for d in known)
    if seen.busy < SATURATED or usual < SLOW_REQUEST:
        return None
    disk = max(known, key=lambda d: _per_mib(d, d.service))
    figures = {"busy": seen.busy, "rate": disk.rate, "service": disk.service or 0.0}
    return Signs(0.7, figures, disk, {"request": size(disk.request)})


ENOUGH_SORTED = 0.5
"""Share of the blocks left to issue that must be in memory for a nearly optimal order."""


def _sorts_little(seen: Evidence) -> Signs | None:
    """Detect issuing before all metadata is scanned, with too few blocks sorted at once."""
    if seen.stage != "issuing" or seen.walked is None or seen.sorted_share is None:
        return None
    if seen.sorted_share > ENOUGH_SORTED or seen.busy < IDLE or not _seek(seen):
        return None
    return _memory(seen, 0.9 if seen.cycles.limited else 0.7)


def _memory(seen: Evidence, sure: float) -> Signs:
    figures = {"walked": seen.walked or 0.0, "turns": float(seen.cycles.changes)}
    figures["issuing"] = seen.cycles.issuing
    if seen.sorted_share is not None:
        figures["sorted"] = seen.sorted_share
    if seen.memory:
        figures["memory"] = float(seen.memory)
    return Signs(sure, figures)


SEEKING = 0.5
"""Share of a request's device time not spent on transferring bytes, from which disks seek."""
SEEK_TIME = 0.002
"""Device seconds per request below which no seek takes place."""
STREAM = 150e6
"""Least bytes/s that a rotating disk is assumed to stream."""


def _seek(seen: Evidence) -> bool:
    """Whether the sources spend most of their time on other than transferring bytes."""
    found = []
    for disk in seen.sources:
        if disk.service is not None and disk.request is not None and disk.service >= SEEK_TIME:
            stream = max(STREAM, disk.past.best_read)
            found.append(max(0.0, 1.0 - disk.request / stream / disk.service))
    return known_median(found) > SEEKING


SMALL = 256 * 1024.0
"""Bytes per request below which seeks surely take most of the time."""
BIG = 512 * 1024.0
"""Bytes per request from which seeking at a steady rate looks like waiting for a link."""


def _small_reads(seen: Evidence) -> Signs | None:
    """Detect that the sources are busy seeking between small extents."""
    return _scattered(seen, 0.9) if seen.request < SMALL else None


def _seeks_or_link(seen: Evidence) -> Signs | None:
    """Detect reads so large and steady that the disks may also be waiting for a link."""
    even = seen.load.unsteady < EVEN_LOAD
    return _scattered(seen, 0.4) if seen.request >= BIG and even else None


def _scattered(seen: Evidence, sure: float = 0.7) -> Signs | None:
    if seen.busy < SATURATED or not _seek(seen):
        return None
    ops = known_median(d.ops for d in seen.sources)
    figures = {"request_bytes": seen.request, "ops": ops, "busy": seen.busy}
    return Signs(sure, figures, details={"each": ops * seen.request})


def _streaming(seen: Evidence) -> Signs | None:
    """Detect disks that are always busy without seeking: at their best rate, if requests are large.

    Small requests without seeks mean flash, which could serve more in parallel.
    """
    if seen.busy < SATURATED:
        return None
    large = seen.request >= STREAMED
    order = "sequential" if large else f"in requests of {size(seen.request)}"
    figures = {"rate": known_median(d.rate for d in seen.sources), "busy": seen.busy}
    return Signs(0.8 if large else 0.4, figures, details={"order": order})


def _idle(seen: Evidence) -> Signs | None:
    """Detect idle disks: something sends too few requests."""
    if seen.busiest >= IDLE:
        return None
    details: dict[str, float | str] = {} if seen.rate > 0 else {"progress": "no progress"}
    if (held := advice.lowered_tunable(seen)) is not None:
        details |= {"tunable": held.name, "value": str(held.value)}
    total = sum(disk.rate for disk in seen.disks)
    return Signs(0.9 if held else 0.6, {"busy": seen.busiest, "rate": total}, details=details)


def _unclear(seen: Evidence) -> Signs:
    details: dict[str, float | str] = {} if seen.cpu is None else {"cpu": seen.cpu}
    details["watched"] = duration(seen.seconds)
    return Signs(0.0, {"busy": seen.busiest}, details=details)


_SILENT = "does not answer: {busy:%} busy, siblings {others_busy:%}"
_SENT = "; {sent:.0f} requests in flight"
_ALTERNATES = (
    "scan memory: scanning and issuing alternate, {walked:%} of the metadata is scanned; "
    "only part of the blocks can be sorted at a time"
)
_SCATTERED = (
    "scattered reads: {ops:.0f} reads/s of {request_bytes:B} ({each:B/s}) per disk, "
    "{busy:%} busy, mostly seeking"
)
_SORT_MORE = partial(advice.reorder, blocks="scattered blocks")
_CHECK_STUCK = advice.says(
    "check the kernel's log and {disk}'s cable, power and SMART; pull it if it stays stuck"
)

RULES = (
    LimitRule(
        "throttle",
        _frozen,
        [f"a throttle or tunable: the scan is frozen, {advice.FREEZE} is 1"],
        advice.says("{act}", "restore", advice.FREEZE),
    ),
    LimitRule("unclear", _unmeasured, ["unclear: how busy the disks are is unknown here"]),
    LimitRule(
        "new-disk",
        partial(_hangs, is_new=True),
        [f"the new disk, {{disk}}, {_SILENT}", _SENT],
        _CHECK_STUCK,
    ),
    LimitRule(
        "slow-disk",
        partial(_hangs, is_new=False),
        [f"a source disk, {{disk}}, {_SILENT}", _SENT],
        _CHECK_STUCK,
    ),
    LimitRule("memory", _alternating, [_ALTERNATES], advice.memory),
    LimitRule(
        "metadata",
        _walks,
        ["finding blocks ({walked:.1%})"],
        advice.says("wait; more ARC for metadata shortens this"),
    ),
    LimitRule(
        "cpu",
        _processor,
        ["the processor: {cpu:%} busy", ", disks at most {at_most:%}"],
        advice.says(
            "leave the scan more CPU (top shows who has it); "
            "a cheaper checksum affects new writes only"
        ),
    ),
    LimitRule(
        "slow-disk",
        _straggles,
        [
            "{disk} is slow: {busy:%} busy, siblings {others_busy:%}",
            "; latency {latency:s}, siblings {others_latency:s}",
        ],
        advice.slow_disk,
    ),
    LimitRule(
        "throttle",
        _few_writes,
        [
            "a throttle: only {in_flight:.1f} writes in flight, {pending:.0f} wait ({each} each); "
            "disk {name}"
        ],
        advice.more_writes,
    ),
    LimitRule(
        "smr",
        _collapsed,
        [
            "the new disk {disk} dropped from {best_write_rate:B/s} to {write_rate:B/s}, "
            "{busy:%} busy, like a shingled (SMR) disk with a full cache"
        ],
        advice.says(
            "check whether {disk} is a shingled model; reduce the load so that its cache empties, "
            "or replace it with a conventional disk"
        ),
    ),
    LimitRule(
        "new-disk",
        _filled,
        [
            "{which} {disk}: {busy:%} busy writing {write_rate:B/s}",
            " in {request_bytes:B} pieces",
            ", siblings {others_busy:%}",
        ],
        advice.new_disk,
    ),
    LimitRule(
        "throttle",
        _held_back,
        [
            "a tunable: {tunable} is {value} (default {default})",
            ", disks at most {at_most:%} busy",
            "; {part} of the requests in flight are from applications",
        ],
        advice.throttle,
    ),
    LimitRule(
        "foreground",
        _applications,
        [
            "applications: {part} of the requests in flight, disks {busy:%} busy",
            ", {writes:B/s} of other writes",
        ],
        advice.foreground,
    ),
    LimitRule(
        "bus",
        _crowded,
        [
            "a shared link: {disks:.0f} disks move {rate:B/s} together, {each:B/s} each",
            "; {faster} of them read {alone:B/s} each when fewer were active; "
            "latency of all: {latency:s}",
        ],
        advice.says(
            "compare link speeds of controller, expander and port multiplier (dmesg, lspci -vv); "
            "spread the disks over more ports"
        ),
    ),
    LimitRule(
        "slow-disk",
        _all_slow,
        [
            "{disk} is slow: {busy:%} busy reading only {rate:B/s}, "
            "{service:s} per request of {request}"
        ],
        advice.slow_disk,
    ),
    LimitRule("memory", _sorts_little, [_ALTERNATES], advice.memory),
    LimitRule(
        "random",
        _small_reads,
        [
            "random I/O: {ops:.0f} reads/s of {request_bytes:B} per disk, {busy:%} busy, "
            "mostly seeking"
        ],
        partial(advice.reorder, blocks="small, scattered blocks"),
    ),
    LimitRule(
        "random",
        _seeks_or_link,
        [_SCATTERED, ", or waiting for a link: a shared one, or USB"],
        _SORT_MORE,
    ),
    LimitRule("random", _scattered, [_SCATTERED], _SORT_MORE),
    LimitRule("disks", _streaming, ["disk throughput: {rate:B/s} each, {order}, {busy:%} busy"]),
    LimitRule(
        "throttle",
        _idle,
        [
            "a throttle or tunable: the disks are at most {busy:%} busy, {rate:B/s} in total",
            "; the scan makes {progress}",
            "; {tunable} is {value}",
        ],
        advice.throttle,
    ),
    LimitRule(
        "unclear",
        _unclear,
        [
            "unclear: the busiest disk is {busy:%} busy",
            ", processor {cpu:%}",
            ", observed for {watched}",
        ],
    ),
)
"""Tried from top to bottom; the last rule always applies."""
