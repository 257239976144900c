"""The headline's cells: how long still, how fast, redundancy left, new errors; each in its place.

Columns and rows of the cells follow from the size of the screen alone. What is not known is said
in its cell, which does not go away: nothing moves while values come and go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from zconsole import units
from zconsole.pool.model import Scan, Vdev
from zconsole.pool.redundancy import REPAIRS, Redundancy
from zconsole.pool.scan_outcome import BY_SPARE, KEEP_OLD
from zconsole.pool.topology import data_vdevs
from zconsole.timeline.eta.estimate import MEASURING, Estimate
from zconsole.timeline.frame import (
    ActivityView,
    Frame,
    ScanView,
    seconds_taken,
    work_name,
)
from zconsole.timeline.scan_rate import LEVEL_TREND, PastRates
from zconsole.ui.display_format import DisplayFormat, count, percent
from zconsole.ui.widgets.draw import Line, Span, joined, width_of

_SMALL = (23, 14, 10, 6)
_NORMAL = (31, 14, 18, 10)
"""Columns of the cells at 60 and at 80 columns; on a narrower screen the first has fewer."""
_GAPS = (1, 2, 2, 2)
"""Blanks before each cell: with one between them, two are read as one fact."""
_WHOLE = sum(_NORMAL) + sum(_GAPS)
"""Columns from which labels are whole."""
_SHARES = (4, 3, 2, 1)
"""How many tenths of any further columns each cell gets."""
_SPREAD = 60
"""Of more columns than this the cells take none: they stay within one glance."""
_NONE = "none"
_UPKEEP = ("trim", "initialize")
"""Work on devices that changes nothing of the pool."""

_CLICKS = ("screen.show_pane('scan')", "", "", "screen.sort_by('errors')")
"""What a click on each cell does."""

CellRows = Sequence[Sequence[Line]]
"""The rows of one cell; of the parts of a row those are shown that fit whole."""


class Place(NamedTuple):
    """What a cell is made from: the frame, and the room there is."""

    frame: Frame
    look: DisplayFormat
    width: int
    tall: bool
    """Whether there is a third row, for what is only good to know."""
    small: bool
    """Whether labels are cut down to their first word."""


def headline(frame: Frame, look: DisplayFormat, width: int, rows: int) -> tuple[Line, ...]:
    """The cells side by side in ``rows`` lines of ``width`` columns."""
    small = width < _WHOLE
    places = [Place(frame, look, columns, rows > 2, small) for columns in _widths(width, look)]
    work, rate = _work(places[0], places[1])
    cells = (work, rate, _redundancy(places[2]), _errors(places[3]))
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


def _widths(width: int, look: DisplayFormat) -> list[int]:
    """The columns of each cell; where every byte is shown, the rate takes some of the first's."""
    least = _NORMAL if width >= _WHOLE else _SMALL
    more = min(_SPREAD, width - sum(least) - sum(_GAPS))
    shares = [max(0, more) * share // sum(_SHARES) for share in _SHARES]
    eta, rate, *others = map(sum, zip(least, shares, strict=True))
    longer = max(0, len("RATE /s =") + look.number - rate)
    return [eta - longer + min(0, more), rate + longer, *others]


def clickable(line: Line, action: str) -> Line:
    """The same line, of which each piece does ``action`` when clicked."""
    return tuple(span._replace(action=action) for span in line) if action else line


def _fitting(wordings: Sequence[str], width: int) -> str:
    """The first of several wordings that fits, else the last."""
    return next((text for text in wordings if cell_len(text) <= width), wordings[-1])


def is_working(frame: Frame) -> bool:
    """Whether something runs that has an end, which the cells then tell of."""
    return (frame.scan is not None and frame.scan.scan.active) or _at_work(frame) is not None


def _at_work(frame: Frame) -> ActivityView | None:
    """The first removal, expansion, job and the like that is being worked on."""
    for view in frame.activities:
        work = view.activity
        if work.state == "running" and work.total_bytes and work.kind not in _UPKEEP:
            return view
    return None


def _work(first: Place, second: Place) -> tuple[CellRows, CellRows]:
    """What runs, how long still and how fast; of an idle pool its last scan, and its fill."""
    view, activity = first.frame.scan, _at_work(first.frame)
    if view is not None and view.scan.active:
        return _eta(view.estimate, view.scan.zpool_eta, first), _scan_rate(view, second)
    if activity is not None:
        moving = None if first.frame.suspended else activity.rate
        return _activity(activity, first), [[_rate(moving, second.look)]]
    root, look = second.frame.root, second.look
    if root is None or not root.size_bytes or root.alloc_bytes is None:
        return _last_scan(view, first), [[_named("FILL", "unknown")]]
    fill = _named("FILL", percent(root.alloc_bytes / root.size_bytes))
    return _last_scan(view, first), [[fill], [(Span(free_words(root, look)),)]]


def _named(label: str, value: str, role: str = "") -> Line:
    return (Span(f"{label} ", "dim"), Span(value, role))


def _eta(estimate: Estimate, zpool: float | None, place: Place) -> CellRows:
    """Duration and clock time, then the range and what zpool says; or why there is none."""
    old = _old(place.frame)
    if place.frame.suspended:
        said = _fitting(("suspended: nothing moves", "nothing moves"), place.width)
        return [[_named("ETA", _NONE, "bold")], [old or (Span(said, "error"),)]]
    if estimate.eta is None:
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
    """Why nothing is estimated, in as many clauses as there is room for."""
    reason = estimate.reason.removeprefix("no estimate: ").removeprefix(f"{MEASURING}, ")
    said = place.look.text(reason)
    if cell_len(said) > place.width:
        said = said.partition("; ")[0]
    while cell_len(said) > place.width and ", " in said:
        said = said.rpartition(", ")[0]
    return (Span(said, "dim"),)


def _old(frame: Frame) -> Line:
    """How old the figures are of a pool that does not answer."""
    if not frame.problem or frame.stale_seconds is None:
        return ()
    return (Span(f"stale: {units.duration(frame.stale_seconds)} old", "warning"),)


def _activity(view: ActivityView, place: Place) -> CellRows:
    """The estimate of a removal, an expansion or a job, and which it is."""
    first, *below = _eta(view.estimate, view.activity.zpool_eta, place)
    name = work_name(view.activity.kind, view.activity.vdev)
    named: Line = (Span(place.look.middle(name, place.width), "dim"),)
    old = _old(place.frame)  # said in the second row, as of a scan: there may be no third
    return [first, [old], [named]] if old else [first, [named], *below]


def _scan_rate(view: ScanView, place: Place) -> CellRows:
    """The rate with its trend, its share of the best seen, and over what time it was seen.

    What the disks did at best is no more than that: a throttle may have held them back all along.
    """
    look, ceiling = place.look, place.frame.ceiling
    if place.frame.suspended:
        return [[_named("RATE", _NONE)]]
    if view.scan.function == "errorscrub":  # it reads a block here and there
        return [[_named("RATE", look.rate(view.issue_rate))]]
    first = _rate(view.issue_rate, look, view.past)
    said = ["best rate unknown", "best unknown"]
    if ceiling is not None:
        best = look.rate(ceiling.rate)
        said = [f"best seen {best}", f"best {best}"]
        if ceiling.share is not None:
            share = f"{percent(ceiling.share, 0)} of best"
            said = [f"{share} seen ({best})", f"{share} seen", share, *said]
    over = "over this pass" if view.window is None else f"last {units.duration(view.window)}"
    shown = over if view.issue_rate is not None else ""
    return [[first], [(Span(_fitting(said, place.width)),)], [(Span(shown, "dim"),)]]


def _rate(rate: float | None, look: DisplayFormat, past: PastRates | None = None) -> Line:
    """``RATE 124M/s ▼``."""
    trend = None if past is None or rate is None else past.trend
    if trend is None or rate is None or not math.isfinite(trend + rate):
        return _named("RATE", look.rate(rate))
    glyphs = look.glyphs
    way = glyphs.rising if trend > 0 else glyphs.falling
    way = glyphs.steady if abs(trend) < LEVEL_TREND else way
    return _named("RATE", f"{look.rate(rate)} {way}")


def _last_scan(view: ScanView | None, place: Place) -> CellRows:
    """Which scan ended last, when, and with what; and the last full scrub where that was none."""
    # How long ago a full scrub was, and whether that is too long; nothing where it is unknown.
    since = place.frame.scrub
    scrub: list[Line] = (
        [(Span(since.words, "warning" if since.overdue else ""),)] if since.words else []
    )
    if view is None or view.scan.function == "none":
        known = "none recorded" if place.frame.seen.scans_told else "unknown"
        return [[_named("LAST SCAN", known)], scrub]
    facts = _results(view, place)
    if view.scan.state != "finished" or since.overdue:
        facts = [*scrub, *facts]
    elif view.scan.end != since.last:
        facts += scrub
    first = _ended(view.scan, place)
    return [[first], facts] if not place.tall else [[first], facts[:1], facts[1:]]


def _ended(scan: Scan, place: Place) -> Line:
    """``LAST SCRUB 12:31``, ``SCRUB CANCELED 16 Nov 12:41``; the hour goes before the day."""
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
    """What came of a scan that is over, the weightiest first."""
    scan, over = view.scan, view.scan.state == "finished"
    facts: list[Line] = []
    if not over and view.percent is not None:
        facts.append((Span(f"at {view.percent:.1f} %", "warning"),))
    elif place.frame.outcome.restored and scan.function in REPAIRS:
        facts.append((Span("redundancy restored", "good"),))
    if scan.errors or (over and scan.errors is not None):
        some = f"{scan.errors} error{'s' if scan.errors != 1 else ''}"
        facts.append((Span(some, "error") if scan.errors else Span("no errors"),))
    if (took := seconds_taken(scan)) is not None:
        facts.append((Span(f"{'took' if over else 'after'} {units.duration(took)}", "dim"),))
    return facts


def free_words(root: Vdev, look: DisplayFormat) -> str:
    """What is free, as ``zpool list`` has it: with the parity that it would take, so raw."""
    parity = any(vdev.kind.startswith(("raidz", "draid")) for vdev in data_vdevs(root))
    free = look.size((root.size_bytes or 0) - (root.alloc_bytes or 0))
    return f"{free} {'raw free' if parity else 'free'}"


def _redundancy(place: Place) -> CellRows:
    """How many more devices may fail: of the vdev that is worst off, and how the others are."""
    label: Line = (Span("REDUNDANCY" if place.small else "REDUNDANCY LEFT", "dim"),)
    ordered = sorted(place.frame.redundancy, key=lambda entry: entry.left)
    if not ordered or (ordered[0].left and place.frame.untold):  # what isn't known may be worse
        return [[label], [(Span("unknown", "dim"),)]]
    alarming = place.frame.health.severity != "ok" and not ordered[0].left
    value: Line = (Span(_worst(ordered, place, alarming), "error" if alarming else ""),)
    others, most = "", ordered[-1].left
    if ordered[0].left != most:
        least = ordered[1].left
        others = f"others: {_left(least, alarming=False)}{' or more' * (most != least)}"
    return [[label], [value], [(Span(others, "dim"),)]]


def _worst(ordered: Sequence[Redundancy], place: Place, alarming: bool) -> str:
    """``raidz2-0: 1 disk``, ``2 left, spare used``: of the first, as much as there is room for."""
    worst, best = ordered[0], ordered[-1]
    left = _left(worst.left, alarming)
    if place.small:
        return left
    same = len(ordered) > 1 and worst.left == best.left
    name = "all vdevs" if same else place.look.text(worst.vdev)
    # What redundancy hangs on although it isn't restored; a vdev that a spare made whole has as
    # much left as the others, where these are like it.
    why = place.frame.health.reasons
    by = "left, spare used" if BY_SPARE in why and worst.left == best.left else ""
    by = "with old disk" if KEEP_OLD in why else by
    if worst.left and by:
        return _fitting((f"{name}: {worst.left} {by}", f"{worst.left} {by}"), place.width)
    room = place.width - len(left) - 2
    return f"{place.look.middle(name, room)}: {left}"


def _left(left: int, alarming: bool) -> str:
    if left:
        return f"{left} disk{'s' if left > 1 else ''}"
    return "NONE" if alarming else _NONE


def _errors(place: Place) -> CellRows:
    """Read, write and checksum errors of the last hour, and in all since they were cleared."""
    frame = place.frame
    new = sum(trouble.deltas.total for trouble in frame.troubles)
    label, said = "NEW ERRORS", _fitting((f"{new} in 1 h", f"{count(new)} in 1h"), place.width)
    if place.small:  # at the edge, as in the column of the devices: beside the redundancy …
        label = "ERR 1h".rjust(place.width)  # … it would read as its errors
        said = _fitting((f"{new} new", count(new)), place.width).rjust(place.width)
    rows: CellRows = [[(Span(label, "dim"),)], [(Span(said, "warning" if new else ""),)]]
    if not place.tall:
        return rows
    every = sum(row.vdev.errors.total for row in frame.rows if not row.vdev.children)
    return [*rows, [(Span(f"{every} in all", "dim"),)]]
