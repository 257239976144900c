"""What limits a running scan: the first rule whose signs are there.

RULES, at the end, is the table: a cause, its signs, its words, what could be done. A rule stands
above those whose limit would look the same: a frozen scan, disks that nobody measured, a disk that
does not answer, scanning metadata, the processor, one disk that the others wait for, queues that
are kept short, a shingled new disk, any new disk, applications, a shared link, slow disks, memory,
seeks, disks at their best rate, and last idle disks. Where nothing is clear, the limit is "unclear"
rather than a guess. Thresholds stand above the signs that use them.
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
    middle,
)
from zconsole.diagnosis.bottleneck.finding import TOO_LITTLE, Figure, Suggestion, Verdict
from zconsole.pool.model import NOTHING
from zconsole.units import duration, latency, percent, size

LEAST_SECONDS = 5.0
"""Less than a transaction group (zfs_txg_timeout) is not enough to judge."""
SATURATED = 0.85
"""Busy share from which a disk is at its limit: a new disk that everything waited for was 85 % busy
in a user's report, the others 20 %."""
IDLE = 0.6
"""Busy share below which a disk surely has time left."""
EVEN_LOAD = 0.08
"""Variation of the rate of a shared link; disks that seek vary more."""
FLASH = 0.001
"""Seconds a request in which no heads move. Flash works at many requests at once: that one always
is in flight does not mean that it is at its limit."""


class Signs(NamedTuple):
    """What speaks for a limit."""

    sure: float
    """How sure it is, 0 to 1: below 0.5 the console says "perhaps"; 0 where nothing is clear."""
    figures: Mapping[str, float]
    """As in Verdict."""
    disk: Disk = NO_DISK
    """The one that is to blame."""
    said: Mapping[str, float | str] = NOTHING
    """What else the words tell."""


class LimitRule(NamedTuple):
    """A row of RULES."""

    cause: str
    signs: Callable[[Evidence], Signs | None]
    words: list[str]
    """Parts of the text, formatted with ``disk``, the figures, and what else is said: ``{busy:%}``.
    A part that tells a figure which is not known is left out."""
    suggest: Callable[[Evidence, Disk], Suggestion] = advice.says("")


def judge(seen: Evidence) -> Verdict | None:
    """Return what limits a running scan; None when none runs."""
    if seen.scan.state != "running":
        return None
    if seen.seconds < LEAST_SECONDS or not seen.disks:
        return TOO_LITTLE
    found = ((rule, signs) for rule in RULES if (signs := rule.signs(seen)) is not None)
    rule, signs = next(found)
    told = {"disk": signs.disk.name, **signs.figures, **signs.said}
    told = {key: value if isinstance(value, str) else Figure(value) for key, value in told.items()}
    text = ""
    for part in rule.words:
        with suppress(KeyError):
            text += part.format(**told)
    suggestion = rule.suggest(seen, signs.disk)
    return Verdict(
        rule.cause,
        text,
        signs.figures,
        signs.sure,
        suggestion,
        signs.disk.name,
        tried=seen.steps.get(suggestion.tunable),
    )


def _frozen(seen: Evidence) -> Signs | None:
    """The tunable is set that keeps scans where they are, whatever else is going on."""
    frozen = seen.tunables.get(advice.FREEZE)
    return Signs(0.95, {"busy": seen.busiest}) if frozen else None


def _unmeasured(seen: Evidence) -> Signs | None:
    """Disks of which nobody knows how busy they are must not be taken for idle ones."""
    return None if all(disk.measured for disk in seen.disks) else Signs(0.0, {})


ANSWERS = 0.5
"""Requests a second below which a busy disk counts as stuck; one that only seeks answers 100."""


def _hangs(seen: Evidence, is_new: bool) -> Signs | None:
    """One disk always has requests in flight and answers none; everything waits for it.

    Linux 5.0 to about 5.17 counts busy time as a request begins or ends only (update_io_ticks,
    block/blk-core.c): a disk that is stuck looks idle, but for what ZFS has sent to it.
    """
    silent = [
        d
        for d in seen.disks
        if ((d.busy or 0.0) >= SATURATED or d.past.stuck >= LEAST_SECONDS)
        and d.requests < ANSWERS
        and d.rate <= TRICKLE
    ]
    others = [d.busy for d in seen.disks if d not in silent]
    if len(silent) != 1 or not others or middle(others) >= IDLE or silent[0].target != is_new:
        return None
    disk = silent[0]
    figures = {"busy": disk.busy or 0.0, "others_busy": middle(others), "answers": disk.requests}
    looks_idle = figures["busy"] < SATURATED
    return Signs(0.9, figures, disk, {"sent": disk.in_flight} if looks_idle else NOTHING)


def _walks_by_turns(seen: Evidence) -> Signs | None:
    """Scanning stops whenever memory is full of blocks to issue (dsl_scan_should_clear)."""
    return _memory(seen, 0.8) if _walks(seen) and seen.turns.limited else None


def _walks(seen: Evidence) -> Signs | None:
    """Scanning metadata, unless a dying disk is what makes that long."""
    walking = seen.stage == "scanning" and seen.scan.function != "rebuild" and seen.scan.two_stage
    if not walking:
        return None
    slow = _straggles(seen) or _all_slow(seen)
    if slow is not None and _per_mib(slow.disk, slow.disk.service) >= SLOW_REQUEST:
        return None
    return Signs(0.9, {"walked": seen.walked or 0.0})


PROCESSOR = 0.9
"""Busy share of all processors together from which a scan's threads wait for one."""


def _processor(seen: Evidence) -> Signs | None:
    """All of the processor is taken, by whatever, and disks have time left."""
    full = any((d.busy or 0.0) >= SATURATED and not _is_flash(d) for d in seen.disks)
    if seen.cpu is None or seen.cpu < PROCESSOR or full:
        return None
    return Signs(0.9, {"cpu": seen.cpu, "busy": seen.busiest})


def _is_flash(disk: Disk) -> bool:
    return disk.rates.latency is not None and disk.rates.latency < FLASH


STRAGGLING = 1.4
"""A slow disk's requests take this many times as long as its siblings'."""
STRAGGLING_GAP = 0.15
"""How much busier than its siblings it is."""
PAIR_GAP = 0.5
"""How much busier than its only sibling it is: of two, either may be the odd one."""


def _straggles(seen: Evidence) -> Signs | None:
    """One source is far busier than its siblings, and slower to answer."""
    tops: dict[str, list[Disk]] = {}
    for disk in seen.sources:
        tops.setdefault(disk.top, []).append(disk)
    for disk in sorted(seen.sources, key=lambda d: -(d.busy or 0.0)):
        others = [d for d in tops[disk.top] if d is not disk]
        busy, usual = disk.busy or 0.0, middle(d.busy for d in others)
        own, wait = disk.rates.latency, middle(d.rates.latency for d in others)
        gap = STRAGGLING_GAP if len(others) > 1 else PAIR_GAP
        slower = (not wait or (own or 0.0) > STRAGGLING * wait) and not _is_flash(disk)
        if others and slower and busy >= SATURATED and busy > usual + gap:
            figures = {"busy": busy, "others_busy": usual, "rate": disk.rate}
            figures |= {} if own is None else {"latency": own, "others_latency": wait}
            return Signs(0.95 if busy > 2 * usual else 0.8, figures, disk)
    return None


WAITING = 8.0
"""Requests waiting to be sent, from which a queue counts as kept short."""
SLOW_REQUEST = 0.05
"""Device seconds that no working disk needs for a request of up to 1 MiB, nor for each MiB of a
larger one: longer than any seek, and 21 MB/s. ZFS sends up to 16 MiB at once (recordsize)."""
MIB = 1 << 20


def _per_mib(disk: Disk, seconds: float | None) -> float:
    """Seconds a request, or a MiB of a larger one; 0 where unknown."""
    return (seconds or 0.0) / max(1.0, (disk.request or 0.0) / MIB)


AT_WORK = 0.1
"""Busy share up to which a disk that is filled has too little to do to judge its queue by."""


def _few_writes(seen: Evidence) -> Signs | None:
    """Requests wait for the disk being filled though it is idle at times: few are sent at once.

    A disk with heads that is busy most of the time may be at its own limit, whatever waits for it.
    So may a slow one: the kernel adds to the busy time when a request ends, and one whose writes
    take half a second looks idle in between.
    """
    disk = _busiest_new(seen)
    busy = disk.busy or 0.0
    if disk.pending < WAITING or busy <= AT_WORK or (busy >= SATURATED and not _is_flash(disk)):
        return None
    if _per_mib(disk, disk.rates.latency) >= SLOW_REQUEST:
        return None
    figures = {"pending": disk.pending, "in_flight": disk.in_flight, "busy": busy}
    said = {"each": latency(disk.rates.latency, "-"), "name": disk.name}
    return Signs(0.8 if busy < SATURATED else 0.6, figures, said=said)


def _busiest_new(seen: Evidence) -> Disk:
    return max(seen.targets, key=lambda disk: disk.busy or 0.0, default=NO_DISK)


GAP = 0.12
"""How much busier than the sources a disk being filled must be."""


def _filled(seen: Evidence) -> Signs | None:
    """The disk being filled is saturated, and the sources wait for it."""
    disk, usual = _busiest_new(seen), seen.busy
    busy = disk.busy or 0.0
    if busy < SATURATED or busy < usual + GAP or disk.rate <= 0:
        return None
    figures = {"write_rate": disk.rate, "busy": busy, "others_busy": usual}
    if disk.request:
        figures["request_bytes"] = disk.request
    count = len(seen.targets)
    which = "the new disk" if count == 1 else f"the {count} new disks, first"
    sure = 0.4 if _is_flash(disk) else 0.95 if busy - usual > 0.3 else 0.8
    return Signs(sure, figures, disk, {"which": which})


COLLAPSE = 0.4
"""A disk that writes less than this share of its best rate has slowed down."""
UNSTEADY = 0.15
"""Variation of write rates from which they count as unsteady: a held disk is held evenly."""
SEEK = 0.025
"""Device seconds that a seek takes at most, over the whole disk and for a turn of it."""


def _collapsed(seen: Evidence) -> Signs | None:
    """Shingled disks write at a fraction of their rate, unsteadily, once their cache is full."""
    filled = _filled(seen)
    if filled is None:
        return None
    disk = filled.disk
    best, unsteady = disk.past.seen_write, disk.past.unsteady
    if disk.rate >= COLLAPSE * best or unsteady < UNSTEADY:
        return None
    if (disk.service or 0.0) < SEEK + (disk.request or 0.0) / best:
        return None  # as slow as seeks alone make any disk
    figures = {"write_rate": disk.rate, "best_write_rate": best, "busy": disk.busy or 0.0}
    figures |= {"unsteady": unsteady, "others_busy": seen.busy}
    return Signs(0.85, figures, disk)


OTHERS = 0.33
"""Share of requests in flight that are applications' from which they are the limit."""
IN_USE = 0.3
"""Busy share from which a source tells whose requests it has."""
CONTENDED = 0.4
"""Busy share of the sources in use below which scan and applications both have room."""


def _applications(seen: Evidence) -> Signs | None:
    """Applications hold the disks that the scan reads from."""
    disks = [d for d in seen.sources if (d.busy or 0.0) > IN_USE]
    share, busy = middle(d.usual_others for d in disks), middle(d.busy for d in disks)
    if busy < CONTENDED or min(share, middle(d.others for d in disks)) < OTHERS:
        return None
    # Samples may miss the few requests of a scan that goes on: never "100 %" while it does.
    nearly = share > 0.95 and seen.rate > 0
    said: dict[str, float | str] = {"part": "nearly all" if nearly else percent(share)}
    if seen.foreground_writes > advice.FEW_WRITES:
        said["writes"] = seen.foreground_writes
    figures = {"others": share, "busy": busy, "other_writes": seen.foreground_writes}
    return Signs(0.8, figures, said=said)


MANY = 4
"""Disks from which equal figures speak for what they share rather than for chance."""
EVEN = 1.35
"""Most that the fastest of disks behind one link moves, in times the slowest."""
ALONE = 0.65
"""Share of what a disk read when fewer were at work, below which it is held back now."""
FLAT = 0.85
"""Share of the most all devices ever moved from which they move as much as they can together."""
SHORT = 1.25
"""How much faster the disks would be together, each at its best, than they ever were."""


def _crowded(seen: Evidence) -> Signs | None:
    """Disks faster alone, now all busy and evenly slow, and together as fast as ever.

    Requests in flight count as busy (/proc/diskstats), so a disk that waits for the link looks
    like a working one. Only the sum, which stays the same with any number of disks, shows it.
    """
    moving, load = [disk for disk in seen.disks if disk.rate > TRICKLE], seen.load
    rates = [disk.rate for disk in moving]
    if len(rates) < MANY or max(rates) > EVEN * min(rates):
        return None
    faster = [d for d in moving if not d.target and d.rate < ALONE * d.past.seen_read]
    flat = load.now > FLAT * load.most and load.unsteady < EVEN_LOAD
    able = sum(max(d.rate, d.past.seen_read) for d in moving)
    full = middle(d.busy for d in moving) >= SATURATED
    if not full or len(faster) < MANY or not flat or able < SHORT * load.most:
        return None
    figures = {"rate": sum(rates), "disks": float(len(rates)), "busy": seen.busiest}
    figures["alone"] = middle(d.past.seen_read for d in faster)
    figures["latency"] = middle(d.rates.latency for d in moving)
    said: dict[str, float | str] = {"each": sum(rates) / len(rates), "faster": str(len(faster))}
    return Signs(0.8, figures, said=said)


def _all_slow(seen: Evidence) -> Signs | None:
    """The only source, or all, take longer than any seek: failing or throttled disks."""
    known = [d for d in seen.sources if d.service is not None]
    usual = middle(_per_mib(d, d.service) for d in known)
    if seen.busy < SATURATED or usual < SLOW_REQUEST:
        return None
    disk = max(known, key=lambda d: _per_mib(d, d.service))
    figures = {"busy": seen.busy, "rate": disk.rate, "service": disk.service or 0.0}
    return Signs(0.7, figures, disk, {"request": size(disk.request)})


ENOUGH_SORTED = 0.5
"""Share of what is left to issue that must be in memory for the order to be nearly the best."""


def _sorts_little(seen: Evidence) -> Signs | None:
    """Issuing before all metadata is scanned: too little could be sorted at once."""
    if seen.stage != "issuing" or seen.walked is None or seen.sorted_share is None:
        return None
    if seen.sorted_share > ENOUGH_SORTED or seen.busy < IDLE or not _seek(seen):
        return None
    return _memory(seen, 0.9 if seen.turns.limited else 0.7)


def _memory(seen: Evidence, sure: float) -> Signs:
    figures = {"walked": seen.walked or 0.0, "turns": float(seen.turns.changes)}
    figures["issuing"] = seen.turns.issuing
    if seen.sorted_share is not None:
        figures["sorted"] = seen.sorted_share
    if seen.memory:
        figures["memory"] = float(seen.memory)
    return Signs(sure, figures)


SEEKING = 0.5
"""Share of a request's device time spent on other than moving bytes."""
SEEK_TIME = 0.002
"""Device seconds a request below which no heads move."""
STREAM = 150e6
"""Bytes/s a rotating disk streams, where it was not seen to."""


def _seek(seen: Evidence) -> bool:
    """Whether most of the sources' time does not go into moving bytes."""
    found = []
    for disk in seen.sources:
        if disk.service is not None and disk.request is not None and disk.service >= SEEK_TIME:
            stream = max(STREAM, disk.past.best_read)
            found.append(max(0.0, 1.0 - disk.request / stream / disk.service))
    return middle(found) > SEEKING


SMALL = 256 * 1024.0
"""Bytes a request below which seeks surely are what takes its time."""
BIG = 512 * 1024.0
"""Bytes a request from which waiting for a link looks the same, where all goes evenly."""


def _small_reads(seen: Evidence) -> Signs | None:
    """Sources busy seeking between small extents, each a movement of the heads."""
    return _scattered(seen, 0.9) if seen.request < SMALL else None


def _seeks_or_link(seen: Evidence) -> Signs | None:
    """Reads so large and even that the disks may as well wait for a link, shared or slow."""
    even = seen.load.unsteady < EVEN_LOAD
    return _scattered(seen, 0.4) if seen.request >= BIG and even else None


def _scattered(seen: Evidence, sure: float = 0.7) -> Signs | None:
    if seen.busy < SATURATED or not _seek(seen):
        return None
    ops = middle(d.ops for d in seen.sources)
    figures = {"request_bytes": seen.request, "ops": ops, "busy": seen.busy}
    return Signs(sure, figures, said={"each": ops * seen.request})


def _streaming(seen: Evidence) -> Signs | None:
    """The disks are always at work, and not seeking: at their best where requests are large.

    Small ones that do not wait for heads are answered by flash, which could do more at once.
    """
    if seen.busy < SATURATED:
        return None
    large = seen.request >= STREAMED
    order = "sequential" if large else f"in requests of {size(seen.request)}"
    figures = {"rate": middle(d.rate for d in seen.sources), "busy": seen.busy}
    return Signs(0.8 if large else 0.4, figures, said={"order": order})


def _idle(seen: Evidence) -> Signs | None:
    """No disk has much to do: something sends too few requests."""
    if seen.busiest >= IDLE:
        return None
    said: dict[str, float | str] = {} if seen.rate > 0 else {"progress": "no progress"}
    if (held := advice.held(seen)) is not None:
        said |= {"tunable": held.name, "value": str(held.value)}
    total = sum(disk.rate for disk in seen.disks)
    return Signs(0.9 if held else 0.6, {"busy": seen.busiest, "rate": total}, said=said)


def _unclear(seen: Evidence) -> Signs:
    said: dict[str, float | str] = {} if seen.cpu is None else {"cpu": seen.cpu}
    said["watched"] = duration(seen.seconds)
    return Signs(0.0, {"busy": seen.busiest}, said=said)


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
    LimitRule("memory", _walks_by_turns, [_ALTERNATES], advice.memory),
    LimitRule(
        "metadata",
        _walks,
        ["scanning metadata ({walked:%})"],
        advice.says("wait; more ARC for metadata shortens this"),
    ),
    LimitRule(
        "cpu",
        _processor,
        ["the processor: {cpu:%} busy, disks at most {busy:%}"],
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
        "foreground",
        _applications,
        [
            "other I/O: {part} of the requests in flight are from applications, "
            "disks {busy:%} busy",
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
"""Tried from top to bottom; the last one always holds."""
