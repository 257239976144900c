"""Header of the screen: health, the headline's cells, and the disks that must not be removed.

The cells are time left, rate, redundancy left and new errors. Their columns and rows depend on the
size of the screen only. An unknown value is named in its cell, which stays, so that nothing moves
as values come and go.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, product
from typing import NamedTuple

from rich.cells import cell_len

from zconsole import units
from zconsole.pool.model import FAILED, Scan, Vdev, data_vdevs
from zconsole.pool.redundancy import REPAIRS, Redundancy
from zconsole.pool.scan_outcome import BY_SPARE, KEEP_OLD
from zconsole.timeline.eta.estimate import MEASURING, Estimate
from zconsole.timeline.frame import (
    SCRUB_HOURS,
    ActivityView,
    Frame,
    ScanView,
    time_taken,
    work_name,
)
from zconsole.timeline.scan_rate import LEVEL_TREND, PastRates
from zconsole.ui.display_format import DisplayFormat, count
from zconsole.ui.panes.pane import COMPACT, TALL
from zconsole.ui.panes.reasons import all_reasons, bays_of
from zconsole.ui.view_state import FRESH, HeaderStatus
from zconsole.ui.widgets.draw import (
    Line,
    Span,
    broken,
    formerly,
    in_runs,
    indented,
    joined,
    short_names,
    spread,
    width_of,
)
from zconsole.units import counted, percent

_REASONS = "screen.show_pane('events')"
"""Action of a click on the health: its causes are among the events."""
_WHERE = ": Enter on the pool's row"
"""Points to the details of the pool, which have all reasons."""
_STAY = ("Do not pull any other disk of", "Pull no other disk of")
"""Text before the disks that must stay, and a shorter one."""
_DISKS = (16, 12, 9, 7)
"""Cells of the name of a disk that must stay; later values if its line would be too long."""
_MESSAGES = {TALL: 3, COMPACT: 2, 0: 1}
"""Lines reserved for messages, by the least height of the screen."""
_BOXED = 100
_WORD = 17
"""Columns of the health in a frame, and of the free space: ``9.31T raw free``."""


def header_lines(
    frame: Frame,
    status: HeaderStatus,
    look: DisplayFormat,
    width: int,
    height: int = 24,
    *,
    brief: bool = False,
) -> tuple[Line, ...]:
    """Return identity, health, the headline's cells, then reasons and disks that must stay.

    The number of lines depends on the screen's size only, so that an alarm moves nothing. ``brief``
    gives as few lines as on a low screen.
    """
    said = 1 if brief else next(rows for least, rows in _MESSAGES.items() if height >= least)
    first = first_line(frame, status, look, width, height)
    if width < _BOXED or height < TALL:
        lines = (*headline(frame, look, width, 2), *_messages(frame, look, width, said))
        return (first, *(look.crop(line, width) for line in lines))
    # A thin frame around a third row of cells, too.
    box, rule, inner = look.glyphs.box, look.glyphs.rule, width - 2
    heads: list[Line] = [clickable(health_word(frame, look), _REASONS), (), ()]
    # Fill and free space stand below the health, unless a cell of the headline has them.
    full, free = fill_words(frame, look)
    if full and frame.work is not None:
        heads[1:] = [(Span(f" {text}", "dim"),) for text in (f"{full} full", free)]
    rows = zip(heads, headline(frame, look, inner - _WORD, 3), strict=True)
    inside = [(*head, Span(" " * (_WORD - width_of(head))), *cells) for head, cells in rows]
    side = Span(box[4], "track")
    framed: list[Line] = []
    for row in (*inside, *_messages(frame, look, inner - 1, said)):
        shown = look.crop(row, inner)
        framed.append((side, *shown, Span(" " * (inner - width_of(shown))), side))
    return (first, *framed, (Span(box[3] + rule * inner + box[2], "track"),))


def first_line(
    frame: Frame, status: HeaderStatus, look: DisplayFormat, width: int, height: int = 24
) -> Line:
    """Return pool and flags, age, interval and clock: everything from ``status``."""
    is_boxed, word = (
        width >= _BOXED and height >= TALL,
        clickable(health_word(frame, look), _REASONS),
    )
    inner = width - 4 if is_boxed else width - width_of(word)
    pool = Span(f" {look.text(frame.pool)}", "bold")
    flags: list[Span] = []
    for flag in dict.fromkeys((*frame.flags, *status.flags)):
        flags += [Span(" "), Span(f" {look.text(flag)} ", "badge-notice")]
    host = [Span(f" on {look.text(status.host)}", "dim")] if status.host else []
    facts = [_age(status)] if status.live or not status.fresh else []
    if status.interval:
        facts.append(Span(f"every {status.interval:g}s", "dim"))
    facts.append(Span(look.clock(status.now), ""))
    while len(facts) > 1 and width_of((pool, *flags, *_row(facts))) + 2 > inner:
        facts.pop(1)  # the interval goes first, then the clock, the age never
    right = _row(facts)
    if width_of((pool, *host, *flags, *right)) + 2 > inner:
        host = []
    left = (pool, *host, *flags)
    if is_boxed:
        box, rule = look.glyphs.box, look.glyphs.rule
        between = Span(rule * (inner - width_of((*left, *right)) - 1), "track")
        ends = Span(box[0] + rule, "track"), Span(rule + box[1], "track")
        line = (ends[0], *left, Span(" "), between, *right, ends[1])
    else:
        line = spread((*word, *left), right, width, look.glyphs.ellipsis)
    return look.crop(line, width)


def notice_line(frame: Frame, look: DisplayFormat, width: int) -> Line:
    """Return the essential numbers on one line, for a terminal too small for panes."""
    spans = [*health_word(frame, look), Span(f" {look.text(frame.pool)}", "bold")]
    view = frame.scan
    if view is not None and view.scan.active:
        share = None if view.percent is None else view.percent / 100
        spans.append(Span(f" {percent(share, 1)} {units.duration(view.estimate.eta)}"))
    return look.crop(tuple(spans), width)


def health_word(frame: Frame, look: DisplayFormat) -> Line:
    """Return the pool's health as a word, in a role by its severity."""
    role = {"ok": "bold"}.get(frame.health.severity, f"badge-{frame.health.severity}")
    word = look.text(frame.health.word)
    return (Span(f" {word} ", role),)


def late_age(status: HeaderStatus) -> Line:
    """Return the age of a late sample, for lists that cover the header; else empty."""
    age = _age(status)
    return (age, Span(" ")) if age.role == "warning" else ()


def _age(status: HeaderStatus) -> Span:
    if status.age is None:
        return Span("never seen", "warning")
    late = status.age >= max(3 * status.interval, FRESH)
    whole = int(status.age)
    age = f"{whole}s" if whole < 100 else f"{whole // 60}m{whole % 60:02d}s"
    age = "<2s" if status.fresh else age if whole < 3600 else f"{whole // 3600}h"
    return Span(f"age {age}", "warning" if late else "dim")


def _row(facts: Sequence[Span]) -> Line:
    out: list[Span] = []
    for fact in facts:
        out += [Span("  "), fact]
    return (*out, Span(" "))


def _counted(
    parts: Sequence[Sequence[Line]], gap: str, width: int, most: int, role: str, where: str = ""
) -> tuple[Line, ...]:
    """Return parts on at most ``most`` lines; the number of those left out is added at the end.

    A part consists of pieces between which lines may break. ``where`` is added if it fits, and says
    where all parts are shown.
    """
    head = Span(" ")
    room = width - width_of((head,)) - 1
    # Prefer more parts to telling where the others are.
    for kept, told in product(range(len(parts), 0, -1), (where, "")):
        rest = len(parts) - kept
        tail: list[Line] = [(Span(f"+{rest} more{told}", role),)] if rest else []
        lines = joined([*chain(*parts[:kept]), *tail], gap, room)
        if len(lines) <= most:
            break
    return indented(head, lines[:most])


def _messages(frame: Frame, look: DisplayFormat, width: int, rows: int) -> tuple[Line, ...]:
    """Return reasons for the health, then disks that must stay, in exactly ``rows`` lines.

    If these are too few, the disks come first, with reasons beside them only if all fit.
    """
    severity = frame.health.severity
    role = "" if severity == "ok" else severity
    kept = _untouchable(frame, look, width, rows)
    left = rows - len(kept)
    short = (
        formerly(reason, width - 2, look.glyphs.ellipsis)
        for reason in all_reasons(frame, look, width - 2)
    )
    parts: list[list[Line]] = []
    for reason in short:
        lines = broken(reason, width - 2)  # wrapped, or whole and cut later
        parts.append([(Span(each, role),) for each in (lines if len(lines) <= left else (reason,))])
    dot = f" {look.glyphs.dot} "
    if not left:
        beside = joined([kept[-1][1:], *chain(*parts)], dot, width - 2)
        return indented(Span(" "), beside) if rows == 1 == len(beside) else kept
    reasons = _counted(parts, dot, width, left, role, _WHERE) if parts else ()
    blank: Line = ()
    return (*reasons, *kept, *[blank] * (left - len(reasons)))


def _untouchable(frame: Frame, look: DisplayFormat, width: int, rows: int) -> tuple[Line, ...]:
    """Return lines on the disks that must stay, for each vdev without redundancy.

    Names are shortened before another of the ``rows`` lines is used.
    """
    bare = [entry for entry in frame.redundancy if not entry.left]
    if frame.health.severity == "ok" or not bare:
        return ()
    bays, gone = bays_of(frame), {row.vdev.name for row in frame.rows if row.gone}
    stays = [(entry, _beside(frame, entry, gone)) for entry in bare]
    ways = [
        [
            part
            for entry, others in stays
            for part in _parts(entry, others, gone, bays, look, longest, stay)
        ]
        for longest in _DISKS
        for stay in _STAY
    ]
    # Shorter names before another line.
    for taken in range(1, rows + 1):
        for parts in ways:
            if len(joined(parts, " ", width - 2)) <= taken:
                return _counted([[part] for part in parts], " ", width, taken, "error")
    return _counted([[part] for part in ways[-1]], " ", width, rows, "error")


def _beside(frame: Frame, entry: Redundancy, gone: Collection[str]) -> list[Vdev]:
    """Return the other disks that a vdev without redundancy has: those being replaced or filled."""
    tops = data_vdevs(frame.root) if frame.root is not None else ()
    leaves = (leaf for top in tops if top.name == entry.vdev for leaf in top.leaves())
    kept = (leaf for leaf in leaves if leaf.state not in FAILED and leaf.kind != "dspare")
    return [leaf for leaf in kept if leaf.name not in (*entry.untouchable, *gone)]


def _parts(
    entry: Redundancy,
    others: Sequence[Vdev],
    gone: Collection[str],
    bays: Mapping[str, str],
    look: DisplayFormat,
    longest: int,
    stay: str,
) -> list[Line]:
    """Return the vdev, then the place of each disk that must stay, as breakable pieces.

    The ``others`` would seem free to be pulled if they were not named, too. Without bays that takes
    too much room, so that none is.
    """
    disks = [disk for disk in entry.untouchable if disk not in gone]
    if not disks:
        return [(Span(f"{look.text(entry.vdev)}: no redundancy left", "error"),)]
    alone = disks == [entry.vdev]
    first = "Do not pull" if alone else f"{stay} {look.text(entry.vdev)}"
    placed = [leaf.disk.bay for leaf in others if leaf.disk and leaf.disk.bay]
    if len(placed) < len(others):
        return [(Span(first, "error"),)]
    seats = [bays[disk] for disk in disks if disk in bays]
    named = [look.text(disk) for disk in disks if disk not in bays]
    short = short_names(named, longest, look.glyphs.ellipsis)
    listed = [*in_runs(list(map(look.text, (*seats, *placed)))), *(short[name] for name in named)]
    texts = [first + ":" * (not alone), *(f"{each}," for each in listed[:-1]), listed[-1]]
    return [(Span(text, "error"),) for text in texts]


_SMALL = (23, 14, 10, 6)
_NORMAL = (31, 14, 18, 10)
"""Columns of the cells at 60 and at 80 columns; on narrower screens the first has fewer."""
_GAPS = (1, 2, 2, 2)
"""Spaces before each cell: with a single one, two cells would be read as one fact."""
_WHOLE = sum(_NORMAL) + sum(_GAPS)
"""Columns of the screen from which labels are in full."""
_SHARES = (4, 3, 2, 1)
"""Tenths of any further columns that each cell gets."""
_SPREAD = 60
"""Most further columns that the cells take, so that they can be read at a glance."""
_NONE = "none"

_CLICKS = ("screen.show_pane('scan')", "", "", "screen.sort_by('errors')")
"""Action of a click on each cell."""

CellRows = Sequence[Sequence[Line]]
"""Rows of a cell; only those parts of a row are shown that fit in full."""


class Place(NamedTuple):
    """Frame that a cell is made from, and its room."""

    frame: Frame
    look: DisplayFormat
    width: int
    tall: bool
    """Whether there is a third row, for less important facts."""
    small: bool
    """Whether labels are cut to their first word."""


def headline(frame: Frame, look: DisplayFormat, width: int, rows: int) -> tuple[Line, ...]:
    """Return the cells side by side in ``rows`` lines of ``width`` columns."""
    small = width < _WHOLE
    least = _SMALL if small else _NORMAL
    more = min(_SPREAD, width - sum(least) - sum(_GAPS))
    shares = [max(0, more) * share // sum(_SHARES) for share in _SHARES]
    eta, rate, *others = map(sum, zip(least, shares, strict=True))
    # With exact bytes, the rate takes some of the first cell's columns.
    longer = max(0, len("RATE /s =") + look.number - rate)
    widths = eta - longer + min(0, more), rate + longer, *others
    places = [Place(frame, look, columns, rows > 2, small) for columns in widths]
    first, second, third, fourth = places
    work = frame.work
    if isinstance(work, ScanView):
        left, speed = _eta(work.estimate, work.scan.zpool_eta, first), _scan_rate(work, second)
    elif work is not None:
        moving = None if frame.suspended else work.rate
        left, speed = _activity(work, first), [[_rate(moving, look)]]
    else:  # the last scan, and how full the pool is
        full, free = fill_words(frame, look)
        below: CellRows = [[(Span(free),)]] if free else []
        left, speed = _last_scan(frame.scan, first), [[_named("FILL", full or "unknown")], *below]
    cells = (left, speed, _redundancy(third), _errors(fourth))
    lines: list[Line] = []
    for row in range(rows):
        line: list[Span] = []
        for gap, cell, place, click in zip(_GAPS, cells, places, _CLICKS, strict=True):
            shown = joined(cell[row] if row < len(cell) else (), "  ", place.width)[:1]
            cut = look.crop(shown[0], place.width) if shown else ()
            padded = (*cut, Span(" " * (place.width - width_of(cut))))
            line += (Span(" " * gap), *clickable(padded, click))
        lines.append(tuple(line))
    return tuple(lines)


def clickable(line: Line, action: str) -> Line:
    """Return the line with a click action on each of its spans."""
    return tuple(span._replace(action=action) for span in line) if action else line


def _fitting(wordings: Sequence[str], width: int) -> str:
    """Return the first wording that fits, else the last."""
    return next((text for text in wordings if cell_len(text) <= width), wordings[-1])


def _named(label: str, value: str, role: str = "") -> Line:
    return (Span(f"{label} ", "dim"), Span(value, role))


def _eta(estimate: Estimate, zpool: float | None, place: Place) -> CellRows:
    """Return estimated duration and end, range, and zpool's estimate; or why there is none."""
    old = _old(place.frame)
    if place.frame.suspended:
        said = _fitting(("suspended: nothing moves", "nothing moves"), place.width)
        return [[_named("ETA", _NONE, "bold")], [old or (Span(said, "error"),)]]
    if estimate.eta is None:
        # While an estimate is being measured, that of zpool is all there is.
        measured = zpool is not None and estimate.lacking == MEASURING and not old
        says: Line = (Span(f"zpool says {units.duration(zpool)}", "dim"),)
        why = says if measured else old or _why_none(estimate, place)
        return [[_named("ETA", estimate.lacking, "bold")], [why]]
    look, now = place.look, place.frame.t
    duration, end = _named("ETA", units.duration(estimate.eta), "bold"), now + estimate.eta
    when, brief = look.when(end, now), look.when(end, now, brief=True)
    ends = _fitting((f"ends {when}", when, brief), place.width - width_of(duration) - 2)
    first, ranged = [duration, (Span(ends),)], old
    if not old and estimate.low is not None and estimate.high is not None:
        between = f"{units.duration(estimate.low)} to {units.duration(estimate.high)}"
        ranged = (Span(between),)
    if zpool is None or old:
        return [first, [ranged]]
    said = units.duration(zpool)
    if place.tall:
        return [first, [ranged], [(Span(f"zpool says {said}", "dim"),)]]
    beside: Line = (*ranged, Span(f"{', ' if ranged else ''}zpool {said}", "dim"))
    return [first, [beside if width_of(beside) <= place.width else ranged]]


def _why_none(estimate: Estimate, place: Place) -> Line:
    """Return why there is no estimate, in as many clauses as fit."""
    reason = estimate.reason.removeprefix("no estimate: ").removeprefix(f"{MEASURING}, ")
    kept = (view.activity for view in place.frame.activities if view.activity.kind == SCRUB_HOURS)
    if reason == "paused" and (hours := next(kept, None)) is not None:
        reason = hours.note  # until when
    said = place.look.text(reason)
    if cell_len(said) > place.width:
        said = said.partition("; ")[0]
    while cell_len(said) > place.width and ", " in said:
        said = said.rpartition(", ")[0]
    return (Span(said, "dim"),)


def _old(frame: Frame) -> Line:
    """Return the age of the figures if the pool does not answer, else empty."""
    if not frame.problem or frame.stale_seconds is None:
        return ()
    return (Span(f"stale: {units.duration(frame.stale_seconds)} old", "warning"),)


def _activity(view: ActivityView, place: Place) -> CellRows:
    """Return the estimate of a removal, expansion or job, with its name."""
    first, *below = _eta(view.estimate, view.activity.zpool_eta, place)
    name = work_name(view.activity.kind, view.activity.vdev)
    named: Line = (Span(place.look.middle(name, place.width), "dim"),)
    old = _old(place.frame)  # in the second row, as for scans: there may be no third
    return [first, [old], [named]] if old else [first, [named], *below]


def _scan_rate(view: ScanView, place: Place) -> CellRows:
    """Return the rate with its trend, its share of the best seen, and how long it was measured.

    The best rate seen need not be the disks' best: something may have throttled them all along.
    """
    look, ceiling = place.look, place.frame.ceiling
    if place.frame.suspended:
        return [[_named("RATE", _NONE)]]
    if view.scan.function == "errorscrub":  # it reads only some blocks
        return [[_named("RATE", look.rate(view.issue_rate))]]
    first = _rate(view.issue_rate, look, view.past)
    said = ["best rate unknown", "best unknown"]
    if ceiling is not None:
        best = look.rate(ceiling.rate)
        said = [f"best seen {best}", f"best {best}"]
        if ceiling.share is not None:
            share = f"{percent(ceiling.share)} of best"
            said = [f"{share} seen ({best})", f"{share} seen", share, *said]
    over = "over this pass" if view.window is None else f"last {units.duration(view.window)}"
    shown = over if view.issue_rate is not None else ""
    return [[first], [(Span(_fitting(said, place.width)),)], [(Span(shown, "dim"),)]]


def _rate(rate: float | None, look: DisplayFormat, past: PastRates | None = None) -> Line:
    """Return ``RATE 124M/s ▼``."""
    trend = None if past is None or rate is None else past.trend
    if trend is None or rate is None or not math.isfinite(trend + rate):
        return _named("RATE", look.rate(rate))
    glyphs = look.glyphs
    way = glyphs.rising if trend > 0 else glyphs.falling
    way = glyphs.steady if abs(trend) < LEVEL_TREND else way
    return _named("RATE", f"{look.rate(rate)} {way}")


def _last_scan(view: ScanView | None, place: Place) -> CellRows:
    """Return the last scan, its end and results, and the last full scrub if that was another."""
    # Age of the last full scrub, and whether it is overdue; empty if unknown.
    since = place.frame.scrub
    canceled = view is not None and view.scan.state != "finished"
    said = since.words
    if since.overdue:
        said = _fitting((f"{said}, overdue", said), place.width)
    elif canceled:  # the canceled one was the last scrub, too
        said = _fitting((said.replace("last scrub", "last full scrub"), said), place.width)
    scrub: list[Line] = [(Span(said, "warning" if since.overdue else ""),)] if said else []
    if view is None or view.scan.function == "none":
        known = "none recorded" if place.frame.seen.scans_known else "unknown"
        return [[_named("LAST SCAN", known)], scrub]
    first, facts = _ended(view.scan, place), _results(view, place)
    if scrub and canceled:
        # In one row, its results would be read as those of the last full scrub.
        return [[first], facts, scrub] if place.tall else [[first], scrub]
    if since.overdue:
        facts = [*scrub, *facts]
    elif view.scan.end != since.last:
        facts += scrub
    return [[first], facts] if not place.tall else [[first], facts[:1], facts[1:]]


def _ended(scan: Scan, place: Place) -> Line:
    """Return ``LAST SCRUB 12:31``, ``SCRUB CANCELED 16 Nov 12:41``; without the hour if narrow."""
    look, over = place.look, scan.state == "finished"
    when = "" if scan.end is None else look.when(scan.end, place.frame.t)
    name, state = look.text(scan.function).upper(), look.text(scan.state).upper()
    heads = (f"LAST {name}", name) if over else (f"{name} {state}",)
    ways = [(head, date) for date in (when, when.rpartition(" ")[0]) for head in heads]
    fits = (way for way in ways if cell_len(" ".join(way)) <= place.width)
    head, date = next(fits, (heads[-1], ""))
    if over:
        return _named(head, date)
    return (Span(f"{name} ", "dim"), Span(state, "warning"), Span(f" {date}"))


def _results(view: ScanView, place: Place) -> list[Line]:
    """Return the results of a finished or canceled scan, the most important first."""
    scan, over = view.scan, view.scan.state == "finished"
    facts: list[Line] = []
    if not over and view.percent is not None:
        facts.append((Span(f"at {view.percent:.1f} %", "warning"),))
    elif place.frame.outcome.restored and scan.function in REPAIRS:
        facts.append((Span("redundancy restored", "good"),))
    if scan.errors or (over and scan.errors is not None):
        some = f"{scan.errors} error{'s' if scan.errors != 1 else ''}"
        facts.append((Span(some, "error") if scan.errors else Span("no errors"),))
    if took := time_taken(scan, "took" if over else "after"):
        facts.append((Span(took, "dim"),))
    return facts


def fill_words(frame: Frame, look: DisplayFormat) -> tuple[str, str]:
    """Return the fill of the pool and its free space; empty if unknown.

    As in ``zpool list``, the free space includes parity, so it is raw.
    """
    root = frame.root
    if root is None or not root.size_bytes or root.alloc_bytes is None:
        return "", ""
    parity = any(vdev.kind.startswith(("raidz", "draid")) for vdev in data_vdevs(root))
    free = look.size(root.size_bytes - root.alloc_bytes)
    return percent(root.alloc_bytes / root.size_bytes, 1), f"{free} {'raw ' * parity}free"


def _redundancy(place: Place) -> CellRows:
    """Return how many devices may still fail: for the weakest vdev, then for the others."""
    label: Line = (Span("REDUNDANCY" if place.small else "REDUNDANCY LEFT", "dim"),)
    ordered = sorted(place.frame.redundancy, key=lambda entry: entry.left)
    if not ordered or (ordered[0].left and place.frame.untold):  # what isn't known may be worse
        return [[label], [(Span("unknown", "dim"),)]]
    (worst, most), why = (ordered[0], ordered[-1].left), place.frame.health.reasons
    alarming = place.frame.health.severity != "ok" and not worst.left
    said = "NONE" if alarming else counted(worst.left, "disk") if worst.left else _NONE
    if not place.small:  # ``raidz2-0: 1 disk``, ``2 left, spare used``
        same = worst.left == most
        name = "all vdevs" if same and len(ordered) > 1 else place.look.text(worst.vdev)
        said = f"{place.look.middle(name, place.width - len(said) - 2)}: {said}"
        # Say what the redundancy depends on if it isn't restored yet; a vdev made whole by a spare
        # counts as much as its equals.
        by = "left, spare used" if BY_SPARE in why and same else ""
        by = "with old disk" if KEEP_OLD in why else by
        if worst.left and by:
            said = _fitting((f"{name}: {worst.left} {by}", f"{worst.left} {by}"), place.width)
    others = ""
    if worst.left != most:
        least = ordered[1].left
        others = f"others: {counted(least, 'disk') if least else _NONE}"
        others += " or more" * (most != least)
    value: Line = (Span(said, "error" if alarming else ""),)
    return [[label], [value], [(Span(others, "dim"),)]]


def _errors(place: Place) -> CellRows:
    """Return the errors of the last hour, or of the time watched, and the total since cleared.

    Without a row for the total, it follows the 0 of a whole hour where it fits: a disk that failed
    before the console began is not to stand beside a bare 0.
    """
    frame = place.frame
    new = sum(trouble.deltas.total for trouble in frame.troubles)
    every = sum(row.vdev.errors.total for row in frame.rows if not row.vdev.children)
    label, minutes = "NEW ERRORS", frame.minutes_watched
    span = "1h" if minutes >= 60 else f"{minutes}m" if minutes else "<1m"
    texts: Sequence[str] = (f"{count(new)} in {span}", count(new))
    brief: Sequence[str] = (f"{new} new", count(new))
    if minutes >= 60:
        texts = (f"{new} in 1 h", *texts)
    elif not new and frame.quiet_since is not None:  # as the scan's pane does, where it fits
        texts = (f"0 since {place.look.when(frame.quiet_since, frame.t)}", *texts)
    if every and not new and not place.tall:
        brief = (f"0, {every} old", f"0, {count(every)} old", "0 new")
        texts = brief if minutes >= 60 else texts
    if place.small:  # at the right edge, as in the device list: next to the redundancy …
        label = _fitting((f"ERR {span}", f"ERR{span}"), place.width)
        label = label.rjust(place.width)  # … they would seem to belong to it
        texts = [text.rjust(place.width) for text in brief]
    said = _fitting(texts, place.width)
    rows: CellRows = [[(Span(label, "dim"),)], [(Span(said, "warning" if new else ""),)]]
    if not place.tall:
        return rows
    return [*rows, [(Span(f"{every} in all", "dim"),)]]
