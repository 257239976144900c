"""Judging: the first cause whose signs are there; "unclear" rather than a guess.

Signs are checked in the order in which one hides another: too few samples, a disk that does not
answer, scanning metadata, the processor, one disk that the others wait for, queues that are kept
short, applications, a shared link, memory, seeks, disks at their streaming rate, and last idle
disks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zconsole.diagnosis.bottleneck import advice
from zconsole.diagnosis.bottleneck.evidence import Disk, Evidence, middle
from zconsole.diagnosis.bottleneck.finding import TOO_LITTLE, Verdict
from zconsole.units import duration, latency, percent, rate, size

LEAST_SECONDS = 5.0
"""Less than a transaction group is not enough to judge."""
SATURATED = 0.85
IDLE = 0.6
PROCESSOR = 0.9
GAP = 0.12
"""How much busier than the sources a disk being filled must be."""
STRAGGLING = 1.4
"""A slow disk's requests take this many times as long as its siblings'."""
STRAGGLING_GAP = 0.15
"""How much busier than its siblings it is."""
PAIR_GAP = 0.5
"""The same where it has one sibling only, which may be the odd one itself."""
COLLAPSE = 0.4
"""A disk that writes less than this share of its best rate has slowed down."""
UNSTEADY = 0.15
"""Variation of write rates from which they count as unsteady: a held disk is held evenly."""
WAITING = 8.0
"""Requests waiting to be sent, from which a queue counts as kept short."""
OTHERS = 0.33
"""Share of requests in flight that are applications' from which they are the limit."""
SEEKING = 0.5
"""Share of a request's device time spent on other than moving bytes."""
SEEK_TIME = 0.002
"""Device seconds a request below which no heads move."""
SLOW_REQUEST = 0.05
"""Device seconds a request that no working disk needs."""
SMALL = 256 * 1024.0
"""Bytes a request below which seeks surely are what takes its time."""
BIG = 512 * 1024.0
"""Bytes a request from which a link that is shared looks the same, where all goes evenly."""
STREAM = 150e6
"""Bytes/s a rotating disk streams, where it was not seen to."""
ENOUGH_SORTED = 0.5
"""Share of what is left to issue that must be in memory for the order to be nearly the best."""
ANSWERS = 0.5
"""Requests a second below which a busy disk counts as stuck."""
EVEN = 1.35
MANY = 4
ALONE = 0.65
"""Share of what a disk read when fewer were at work, below which it is held back now."""
FLAT = 0.85
"""Share of the most all devices ever moved from which they move as much as they can together."""
STEADY = 0.08
"""Variation of a shared link; disks that seek vary more."""
SHORT = 1.25
"""How much faster the disks would be together, each at its best, than they ever were."""

Rule = Callable[[Evidence], Verdict | None]


def judge(seen: Evidence) -> Verdict | None:
    """What limits a running scan; None when none runs."""
    if seen.scan.state != "running":
        return None
    if seen.seconds < LEAST_SECONDS or not seen.disks:
        return TOO_LITTLE
    if not all(disk.measured for disk in seen.disks):
        return Verdict("unclear", "unclear: how busy the disks are is unknown here")
    for rule in RULES:
        verdict = rule(seen)
        if verdict is not None:
            return verdict
    return _unclear(seen)


def _stuck(seen: Evidence) -> Verdict | None:
    """One disk always has requests in flight and answers none; everything waits for it."""
    stuck = [d for d in seen.disks if (d.busy or 0.0) >= SATURATED and _answers(d) < ANSWERS]
    others = [d.busy for d in seen.disks if d not in stuck]
    if len(stuck) != 1 or not others or middle(others) >= IDLE:
        return None
    disk = stuck[0]
    what, cause = ("the new disk", "new-disk") if disk.target else ("a source disk", "slow-disk")
    busy, usual = disk.busy or 0.0, middle(others)
    text = f"{what}, {disk.name}, does not answer: {percent(busy)} busy, "
    text += f"siblings {percent(usual)}"
    figures = {"busy": busy, "others_busy": usual, "answers": _answers(disk)}
    return Verdict(cause, text, figures, 0.9, advice.stuck(disk.name), disk.name)


def _answers(disk: Disk) -> float:
    return (disk.rates.read_ops or 0.0) + (disk.rates.write_ops or 0.0)


def _metadata(seen: Evidence) -> Verdict | None:
    if seen.stage != "scanning" or seen.scan.function == "rebuild" or not seen.scan.two_stage:
        return None
    if seen.tunables.get(advice.FREEZE):
        return None  # it never gets to the end
    walked = seen.walked or 0.0
    if seen.turns.limited:
        return _remembered(seen, 0.8)
    text = f"scanning metadata ({percent(walked)})"
    return Verdict("metadata", text, {"walked": walked}, 0.9, advice.METADATA)


def _processor(seen: Evidence) -> Verdict | None:
    busiest = _busiest(seen.disks)
    if seen.cpu is None or seen.cpu < PROCESSOR or busiest >= SATURATED:
        return None
    text = f"the processor: {percent(seen.cpu)} busy with checksums and parity, "
    text += f"disks at most {percent(busiest)}"
    return Verdict("cpu", text, {"cpu": seen.cpu, "busy": busiest}, 0.9, advice.CPU)


def _straggler(seen: Evidence) -> Verdict | None:
    """One source far busier, or slower to answer, than its siblings."""
    for disk in sorted(seen.sources, key=lambda d: -(d.busy or 0.0)):
        others = [d for d in seen.sources if d.top == disk.top and d is not disk]
        if (disk.busy or 0.0) >= SATURATED and others and _lags(disk, others):
            return _slow(seen, disk, middle(d.rates.latency for d in others), others)
    return None


def _lags(disk: Disk, others: list[Disk]) -> bool:
    busy = middle(d.busy for d in others)
    waits = middle(d.rates.latency for d in others)
    longer = (disk.rates.latency or 0.0) > STRAGGLING * waits if waits else True
    gap = STRAGGLING_GAP if len(others) > 1 else PAIR_GAP
    return (disk.busy or 0.0) > busy + gap and longer


def _slow(seen: Evidence, disk: Disk, wait: float, others: list[Disk]) -> Verdict:
    busy, usual = disk.busy or 0.0, middle(d.busy for d in others)
    own = disk.rates.latency
    text = f"{disk.name} is slow: {percent(busy)} busy, siblings {percent(usual)}"
    if own is not None:
        text += f"; latency {latency(own)}, siblings {latency(wait)}"
    figures = {"busy": busy, "others_busy": usual, "rate": disk.rate}
    if own is not None:
        figures |= {"latency": own, "others_latency": wait}
    sure = 0.95 if busy > 2 * usual else 0.8
    return Verdict("slow-disk", text, figures, sure, advice.slow_disk(seen, disk), disk.name)


def _filled(seen: Evidence) -> Verdict | None:
    """The disk being filled is saturated, and the sources wait for it."""
    targets = sorted(seen.targets, key=lambda d: -(d.busy or 0.0))
    if not targets:
        return None
    disk, usual = targets[0], middle(d.busy for d in seen.sources)
    busy = disk.busy or 0.0
    if _kept_short(disk):
        return _short(seen, disk)
    if busy < SATURATED or busy < usual + GAP or disk.rate <= 0:
        return None
    return _collapsed(disk, usual) or _new(seen, disk, usual)


def _kept_short(disk: Disk) -> bool:
    """Whether requests wait though the disk is idle at times: few are sent at once.

    A disk that is busy most of the time may be at its own limit, whatever waits for it.
    """
    return disk.pending >= WAITING and 0.1 < (disk.busy or 1.0) < SATURATED


def _short(seen: Evidence, disk: Disk) -> Verdict:
    flight = sum(disk.past.active.values())
    text = f"a throttle: only {flight:.1f} writes in flight, {disk.pending:.0f} wait"
    text += f" ({latency(disk.rates.latency, '-')} each); disk {disk.name}"
    figures = {"pending": disk.pending, "in_flight": flight, "busy": disk.busy or 0.0}
    return Verdict("throttle", text, figures, 0.8, advice.more_writes(seen))


def _collapsed(disk: Disk, usual: float) -> Verdict | None:
    """Shingled disks write at a fraction of their rate, unsteadily, once their cache is full."""
    seen = disk.past.seen_write
    large = (disk.request or 0.0) >= 64 * 1024
    if not large or disk.rate >= COLLAPSE * seen or disk.past.unsteady < UNSTEADY:
        return None
    text = f"the new disk {disk.name} dropped from {rate(seen)} to {rate(disk.rate)}, "
    text += f"{percent(disk.busy or 0)} busy, like a shingled (SMR) disk with a full cache"
    figures = {"write_rate": disk.rate, "best_write_rate": seen, "busy": disk.busy or 0.0}
    figures |= {"unsteady": disk.past.unsteady, "others_busy": usual}
    return Verdict("smr", text, figures, 0.85, advice.smr(disk.name), disk.name)


def _new(seen: Evidence, disk: Disk, usual: float) -> Verdict:
    busy, count = disk.busy or 0.0, len(seen.targets)
    pieces = f" in {size(disk.request)} pieces" if disk.request else ""
    text = f"the new disk {disk.name}: {percent(busy)} busy writing {rate(disk.rate)}{pieces}, "
    text += f"siblings {percent(usual)}"
    if count > 1:
        text = f"the {count} new disks, first {text.removeprefix('the new disk ')}"
    figures = {"write_rate": disk.rate, "busy": busy, "others_busy": usual}
    if disk.request:
        figures["request_bytes"] = disk.request
    sure = 0.95 if busy - usual > 0.3 else 0.8
    return Verdict("new-disk", text, figures, sure, advice.new_disk(seen, disk), disk.name)


def _foreground(seen: Evidence) -> Verdict | None:
    """Applications hold the disks the scan reads from."""
    disks = [d for d in seen.sources if (d.busy or 0.0) > 0.3]
    share, busy = middle(d.usual_others for d in disks), middle(d.busy for d in disks)
    if busy < 0.4 or min(share, middle(d.others for d in disks)) < OTHERS:
        return None
    # Samples may miss the few requests of a scan that goes on.
    part = "nearly all" if share > 0.95 and seen.rate > 0 else percent(share)
    text = f"other I/O: {part} of the requests in flight are from applications, "
    text += f"disks {percent(busy)} busy"
    if seen.foreground_writes > 1e6:
        text += f", {rate(seen.foreground_writes)} of other writes"
    figures = {"others": share, "busy": busy, "other_writes": seen.foreground_writes}
    return Verdict("foreground", text, figures, 0.8, advice.foreground(seen))


def _memory(seen: Evidence) -> Verdict | None:
    """Issuing before all metadata is scanned: too little could be sorted at once."""
    if seen.stage != "issuing" or seen.walked is None or seen.sorted_share is None:
        return None
    idle = middle(d.busy for d in seen.sources) < IDLE
    if seen.sorted_share > ENOUGH_SORTED or idle or not _seeks(seen):
        return None
    if seen.turns.limited:
        return _remembered(seen, 0.9)
    return _remembered(seen, 0.7)


def _remembered(seen: Evidence, sure: float) -> Verdict:
    """Scanning stops whenever memory is full of blocks to issue (dsl_scan_should_clear)."""
    walked = seen.walked or 0.0
    text = f"scan memory: scanning and issuing alternate, {percent(walked)} of the metadata is "
    text += "scanned; only part of the blocks can be sorted at a time"
    figures = {"walked": walked, "turns": float(seen.turns.changes)}
    figures["issuing"] = seen.turns.issuing
    if seen.sorted_share is not None:
        figures["sorted"] = seen.sorted_share
    if seen.memory:
        figures["memory"] = float(seen.memory)
    return Verdict("memory", text, figures, sure, advice.memory(seen))


def _random(seen: Evidence) -> Verdict | None:
    """Sources busy seeking: small extents, each a movement of the heads."""
    busy = middle(d.busy for d in seen.sources)
    if busy < SATURATED or not _seeks(seen):
        return None
    request = middle(d.request for d in seen.sources)
    ops = middle(d.ops for d in seen.sources)
    kind, each = "random I/O", f"{ops:.0f} reads/s of {size(request)}"
    if not (small := request < SMALL):
        kind, each = "scattered reads", f"{each} ({rate(ops * request)})"
    text = f"{kind}: {each} per disk, {percent(busy)} busy, mostly seeking"
    figures, sure = {"request_bytes": request, "ops": ops, "busy": busy}, 0.9 if small else 0.7
    if request >= BIG and len(seen.sources) >= MANY and seen.load.unsteady < STEADY:
        text, sure = f"{text}, or waiting for a shared link", 0.4
    return Verdict("random", text, figures, sure, advice.random_io(seen, small))


def _seeks(seen: Evidence) -> bool:
    return _seek_share(seen) > SEEKING


def _seek_share(seen: Evidence) -> float:
    """Share of a source's time a request that does not go into moving its bytes."""
    found = []
    for disk in seen.sources:
        if disk.service is None or disk.request is None or disk.service < SEEK_TIME:
            continue
        stream = max(STREAM, disk.past.best_read)
        found.append(max(0.0, 1.0 - disk.request / stream / disk.service))
    return middle(found)


def _all_slow(seen: Evidence) -> Verdict | None:
    """The only source, or all, take longer than any seek: failing or throttled disks."""
    services = [d.service for d in seen.sources if d.service is not None]
    busy = middle(d.busy for d in seen.sources)
    if not services or busy < SATURATED or middle(services) < SLOW_REQUEST:
        return None
    disk = max(seen.sources, key=lambda d: d.service or 0.0)
    text = f"{disk.name} is slow: {percent(busy)} busy reading only {rate(disk.rate)}, "
    text += f"{latency(disk.service)} per request of {size(disk.request)}"
    figures = {"busy": busy, "rate": disk.rate, "service": disk.service or 0.0}
    return Verdict("slow-disk", text, figures, 0.7, advice.slow_disk(seen, disk), disk.name)


def _streaming(seen: Evidence) -> Verdict | None:
    """The disks stream at their maximum, in large requests."""
    busy = middle(d.busy for d in seen.sources)
    if busy < SATURATED:
        return None
    each = middle(d.rate for d in seen.sources)
    text = f"disk throughput: {rate(each)} each, sequential, {percent(busy)} busy"
    return Verdict("disks", text, {"rate": each, "busy": busy}, 0.8)


def _idle(seen: Evidence) -> Verdict | None:
    """Nothing is saturated: a shared link, or something that sends too few requests."""
    busiest = _busiest(seen.disks)
    if busiest >= IDLE:
        return None
    if _shared(seen):
        return _bus(seen)
    total = sum(disk.rate for disk in seen.disks)
    text = f"a throttle or tunable: the disks are at most {percent(busiest)} busy, "
    text += f"{rate(total)} in total" + ("" if seen.rate > 0 else "; the scan makes no progress")
    found = advice.throttle(seen)
    if found.name:
        text += f"; {found.name} is {found.value}"
    figures = {"busy": busiest, "rate": total}
    sure = 0.9 if found.name else 0.6
    return Verdict("throttle", text, figures, sure, found.advice)


def _shared(seen: Evidence) -> bool:
    """Whether many disks do the same, moderate amount with more waiting: a link they share."""
    moving = [d for d in seen.disks if d.rate > 1e6]
    rates = [d.rate for d in moving]
    if len(moving) < MANY or max(rates) > EVEN * min(rates) or advice.throttle(seen).name:
        return False
    waiting = any(d.pending >= 1 for d in moving)
    return waiting and sum(rates) >= 80e6 and (seen.cpu or 0.0) < PROCESSOR


def _bus(seen: Evidence, faster: Sequence[Disk] = ()) -> Verdict:
    moving = [d for d in seen.disks if d.rate > 1e6]
    total = sum(d.rate for d in moving)
    text = f"a shared link: {len(moving)} disks move {rate(total)} together, "
    text += f"{rate(total / len(moving))} each"
    figures = {"rate": total, "disks": float(len(moving)), "busy": _busiest(seen.disks)}
    if not faster:
        text += f", only {percent(_busiest(seen.disks))} busy"
        return Verdict("bus", text, figures, 0.6, advice.BUS)
    alone = middle(d.past.seen_read for d in faster)
    wait = middle(d.rates.latency for d in moving)
    text += f"; {len(faster)} of them read {rate(alone)} each when fewer were active; "
    text += f"latency of all: {latency(wait)}"
    figures |= {"alone": alone, "latency": wait}
    return Verdict("bus", text, figures, 0.8, advice.BUS)


def _crowded(seen: Evidence) -> Verdict | None:
    """Disks faster alone, now all busy and evenly slow, and together as fast as ever.

    Requests in flight count as busy (/proc/diskstats), so a disk that waits for the link looks
    like a working one. Only the sum, which stays the same with any number of disks, shows it.
    """
    moving = [d for d in seen.disks if d.rate > 1e6]
    rates = [d.rate for d in moving]
    if len(moving) < MANY or middle(d.busy for d in moving) < SATURATED:
        return None
    faster = [d for d in moving if not d.target and d.rate < ALONE * d.past.seen_read]
    load = seen.load
    flat = load.now > FLAT * load.most and load.unsteady < STEADY
    able = sum(max(d.rate, d.past.seen_read) for d in moving)
    if len(faster) < MANY or max(rates) > EVEN * min(rates) or not flat or able < SHORT * load.most:
        return None
    return _bus(seen, faster)


def _unclear(seen: Evidence) -> Verdict:
    busiest = _busiest(seen.disks)
    text = f"unclear: the busiest disk is {percent(busiest)} busy"
    if seen.cpu is not None:
        text += f", processor {percent(seen.cpu)}"
    return Verdict("unclear", f"{text}, observed for {duration(seen.seconds)}", {"busy": busiest})


def _busiest(disks: tuple[Disk, ...]) -> float:
    return max((disk.busy or 0.0 for disk in disks), default=0.0)


RULES: tuple[Rule, ...] = (
    _stuck,
    _metadata,
    _processor,
    _straggler,
    _filled,
    _foreground,
    _crowded,
    _all_slow,
    _memory,
    _random,
    _streaming,
    _idle,
)
