"""Scan pane: progress of scans and activities, rate graph, then advice.

The graph can be scrolled through the time of the scan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

from textual import getters

from zconsole import units
from zconsole.pool.model import Scan
from zconsole.timeline.eta.estimate import MEASURING, Estimate
from zconsole.timeline.frame import (
    RESTARTED,
    SCRUB_HOURS,
    ActivityView,
    Fact,
    Frame,
    ScanView,
    range_words,
    result_facts,
    stage_words,
    time_taken,
    work_name,
)
from zconsole.timeline.scan_rate import PastRates
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.pane import TALL, Ink, Pane, Scene, Wish, spare
from zconsole.ui.panes.rate_graph import graph_width, rate_lines
from zconsole.ui.panes.reasons import advice_lines, as_called, called_names, fixed
from zconsole.ui.themed_app import ThemedApp
from zconsole.ui.widgets.draw import Line, Span, beside, joined, width_of
from zconsole.ui.widgets.graph import bar, graph_values
from zconsole.ui.widgets.lines_view import SCROLL_MARKS

_HEAD = 11
_STAGE = 14
_ALONE = 9
"""Cells of a stage if no line below has to align with it."""
_PAST_SHOWN = 2
_GRAPH_FROM = 30
"""Lines of the screen below which the graph has one row."""
_GRAPH_ROWS = (8, 6, 4)
_GRAPH_OVER = 4
"""Rows of the graph of a finished scan, as current facts are more important."""
_GRAPH_MOST = 20
"""Most rows of a graph on the whole screen."""
_WIDE = 80
"""Columns of the screen from which the headline has zpool's estimate."""


def scan_lines(
    frame: Frame,
    look: DisplayFormat,
    width: int,
    *,
    compact: bool = False,
    roomy: bool = False,
    whole: bool = False,
    graph: int = 1,
    until: float | None = None,
    room: int | None = None,
) -> tuple[Line, ...]:
    """Return the scan of the headline, other running ones, newest past ones, then advice.

    The number of lines depends on what is running, not on what is known of it: facts that may come
    have reserved lines. ``compact`` omits what is dispensable, ``roomy`` gives advice several
    lines, ``whole`` cuts nothing. ``graph`` is the number of rows of the graph, which ends at
    ``until``; with 0 a finished scan has none. ``room`` is the number of lines if they may be too
    few: running work that does not fit is counted in the last one.
    """
    ink = Ink(look, width, frame, called_names(frame), compact, roomy, whole)
    running = [view for view in frame.scans if view.scan.active]
    shown = 0 if compact and len(running) > 1 else graph  # the headline has the first scan's rate
    entries = [_main(view, ink, shown, until) for view in running[:1]]
    entries += [_other(view, ink) for view in running[1:]]
    entries += activity_entries(frame.activities, ink)
    below = advice_lines(ink, running=len(running))
    lines = [line for entry in entries for line in entry]
    if room is not None and len(lines) > room and len(entries) > 1:
        # As many entries as fit in full, at least one; the others are counted.
        ends = list(accumulate(len(entry) for entry in entries))
        fitting = max(1, sum(end < room for end in ends))
        more = Span(f" +{len(entries) - fitting} more", "dim")
        lines = [*lines[: min(ends[fitting - 1], room - 1)], (more,)]
    past = [v for v in frame.scans if not v.scan.active and v.scan.function != "none"]
    graphed = graphed_scan(frame)
    for view in past[: 1 if running else _PAST_SHOWN]:
        lines.extend(_past(view, ink))
        if view is graphed and graph:
            lines.extend(rate_lines(view, ink, graph, until))
    if not lines:
        known = "no scan has run on this pool" if frame.seen.scans_known else "scan unknown"
        known = known if frame.rows else "not sampled yet"
        lines = [(Span(f" {known}", "dim"),)]
    if room is not None:
        below = below[: max(0, room - len(lines))]
    return tuple(look.crop(line, width) for line in (*lines, *below))


def graphed_scan(frame: Frame) -> ScanView | None:
    """Return the scan with a graph: the running one, else the newest one if its rates are known."""
    seen = [view for view in frame.scans if view.scan.function != "none"]
    first = next((view for view in seen if view.scan.active), seen[0] if seen else None)
    is_drawn = first is not None and (first.scan.active or any(first.past.rates))
    return first if is_drawn else None


def _main(view: ScanView, ink: Ink, graph: int, until: float | None) -> list[Line]:
    """Return the lines of the scan whose estimate and rate are in the headline."""
    scan, lines, walk = view.scan, [_progress(view, ink)], list[Line]()
    if _has_first_stage(scan):
        word = f"{stage_words(scan, 'scanning'):<{_STAGE}}"
        head: Line = (Span(" " * _HEAD), Span(word, "dim"))
        walk = [barred(head, None, scan.scanned_bytes, scan.total_bytes, ink, thin=True)]
    is_drawn = graph and view.scan.function != "errorscrub"
    drawn = rate_lines(view, ink, graph, until) if is_drawn else []
    notes, facts = [*_notes(view, ink)], [*_facts(view, ink)]
    if ink.compact:
        # Hardly anything is issued while metadata is scanned: that stage's bar takes the graph's
        # place.
        is_walking = _is_walking(view)
        is_said = is_walking or ink.width >= _WIDE or ink.frame.suspended
        is_said = is_said or bool(view.lag) or (view.restarts or 0) > 1
        says = [] if is_said else [*zpool_says(view.scan.zpool_eta)]
        second = walk if is_walking else drawn
        return [*lines, *second, *one_line([*says, *notes, *facts], ink)]
    lines += [*walk, *drawn]
    if not ink.roomy:
        return [*lines, *one_line([*notes, *facts], ink)]
    lines += [*one_line(notes, ink), *one_line(facts, ink)]
    known = [each for each in (view.estimate, view.full) if each and each.eta is not None]
    basis = "; ".join(each.reason for each in known if each.reason)
    return [*lines, *fixed("based on", basis, 1, ink)]


def _other(view: ScanView, ink: Ink) -> list[Line]:
    """Return the lines of a further running scan."""
    parts = [eta_line("ETA", view.estimate, ink), *zpool_says(view.scan.zpool_eta)]
    if view.issue_rate is not None:
        parts.append((Span("rate ", "dim"), Span(ink.look.rate(view.issue_rate))))
    return [_progress(view, ink), *one_line([*parts, *_facts(view, ink)], ink)]


def _has_first_stage(scan: Scan) -> bool:
    """Return whether a scan has a metadata stage; a rebuild's scanned bytes are its progress."""
    return scan.two_stage and scan.scanned_bytes is not None and scan.function != "rebuild"


def _progress(view: ScanView, ink: Ink) -> Line:
    """Return ``resilver  resilvering 38.2 % ████····  4.93T of 12.9T``."""
    scan = view.scan
    done, total = scan.progress_bytes
    room = _STAGE if _has_first_stage(scan) else _ALONE
    word = subject(scan.name, scan.vdev, room + 2, total, ink)
    stage = stage_words(scan, view.stage and "issuing")
    stage = stage or ("" if scan.function == "rebuild" else "running")
    role = ""
    if scan.state == "paused":
        stage, role = "PAUSED", "notice"
    if ink.frame.suspended:
        stage, role = "suspended", "error"
    head: Line = (Span(f" {word:<{_HEAD - 2}} ", "bold"), Span(f"{stage:<{room}}", role))
    return barred(head, view.percent, done, total, ink)


def _is_walking(view: ScanView) -> bool:
    """Return whether metadata is being scanned, or was when the scan was paused."""
    scan = view.scan
    if not _has_first_stage(scan):
        return False
    paused = scan.state == "paused" and (scan.scanned_bytes or 0) < (scan.total_bytes or 0)
    return paused or view.stage == "scanning"


def _facts(view: ScanView, ink: Ink) -> Iterator[Line]:
    """Yield repaired bytes, errors, comparison, a restart, best rate and start, as known."""
    scan, look = view.scan, ink.look
    for label, value, severity in result_facts(scan, look.size):
        yield (Span(f"{label} ", "dim"), Span(value, severity))
    past = view.comparison
    if past is not None and not ink.roomy:  # there the comparison is in the basis of the ETA
        said = f"{units.duration(past.took)}, {past.this} {past.how}"
        said += " in running time" * (view.working is not None)  # the ETA counts pauses, too
        yield (Span(f"{past.which} ", "dim"), Span(said))
    if view.restarts == 1:  # the notes count several
        yield (Span("restarts 1", "warning"),)
    if view.scan_rate is not None and view.stage == "scanning" and scan.two_stage:
        yield (Span("scanned at ", "dim"), Span(look.rate(view.scan_rate)))
    if view is ink.frame.scan and ink.frame.ceiling is not None:
        yield (Span("best seen ", "dim"), Span(look.rate(ink.frame.ceiling.rate)))
    if scan.start is not None:
        yield (Span("since ", "dim"), Span(look.when(scan.start, ink.frame.t)))


def _notes(view: ScanView, ink: Ink) -> Iterator[Line]:
    """Yield what is unusual: stalled, paused, lagging, restarted, or full redundancy later."""
    if view.stalled is not None:
        yield (Span(f"STALLED: no progress for {units.duration(view.stalled)}", "error"),)
    since = view.scan.paused_since
    if view.scan.state == "paused" and since is not None:
        yield (Span(f"paused since {ink.look.when(since, ink.frame.t)}", "notice"),)
    if view.lag and not ink.roomy:  # there it is in the basis of the ETA
        yield (Span(view.lag, "notice"),)
    if view.full is not None and view.full != view.estimate:
        yield eta_line(view.full_called, view.full, ink)
    restarts = view.restarts or 0
    if restarts > 1:
        # An ETA beside the last restart alone would seem more certain than it is.
        known = [mark.t for mark in view.past.marks if mark.text == "restart"][-restarts:]
        first = f" since {ink.look.when(known[0], ink.frame.t)}" if len(known) == restarts else ""
        said = f"restarted {restarts} times{first}"
        if first and _never_ends(known, view.estimate.eta, ink.frame.t):
            minutes = max(1, round((known[-1] - known[0]) / (restarts - 1) / 60))
            every = units.duration(minutes * 60.0).removesuffix("00s")
            said = f"can't end: restarts about every {every} ({restarts} times{first})"
        yield (Span(said, "warning"),)
    again = [i for i, note in enumerate(view.notes) if note.startswith(RESTARTED)]
    for i, note in enumerate(view.notes):
        if ink.whole or i not in again[1:]:
            is_last = restarts > 1 and i in again
            said = f"last {note.removeprefix(RESTARTED)}" if is_last and not ink.whole else note
            yield (Span(ink.look.text(as_called(said, ink.names)), "notice"),)


def _never_ends(restarts: Sequence[float], eta: float | None, now: float) -> bool:
    """Return whether a scan needs longer than it ever ran from one restart to the next.

    Not once it has run for longer than that, as the restarts may have stopped.
    """
    longest = max(after - before for before, after in pairwise(restarts))
    ran = now - restarts[-1]
    return eta is not None and ran <= longest < ran + eta


def _past(view: ScanView, ink: Ink) -> list[Line]:
    """Return ``scrub finished Sun 03:12, after 4h12m, repaired 0, errors 0``."""
    scan, look = view.scan, ink.look
    when = "" if scan.end is None else f" {look.when(scan.end, ink.frame.t)}"
    name = look.text(work_name(scan.name, scan.vdev))
    after = time_taken(scan, "after")
    said = ", ".join(filter(None, (f"{look.text(scan.state)}{when}", after)))
    head = (Span(f" {name} ", "bold"), Span(said))
    facts = [fact for fact in result_facts(scan, look.size) if fact.label != "skipped"]
    if width_of(_listed(head, facts)) > ink.width:
        facts = [fact for fact in facts if fact.label == "errors"]
    notes = [*_notes(view, ink)]
    return [_listed(head, facts), *(one_line(notes, ink) if notes else ())]


def _listed(head: Line, facts: Iterable[Fact]) -> Line:
    said = ((Span(", "), Span(f"{fact.label} {fact.value}", fact.severity)) for fact in facts)
    return (*head, *(span for spans in said for span in spans))


_GRAPH_KEYS = (("fold-in", "older"), ("fold-out", "newer"), ("end", "now"), ("zoom", "zoom"))
"""Keys that scroll the graph."""
_ALL_SHOWN = "no older history: the graph shows all from the start on"


class ScanPane(Pane):
    """Pane of the scans, with their first line as its title; its graph can be scrolled."""

    pane_id = "scan"
    place = "top"
    goes_sideways = True
    app = getters.app(ThemedApp)

    def __init__(self, *, repaint: Callable[[], None]) -> None:
        """``repaint`` is called when the graph shows another time."""
        super().__init__()
        self.until: float | None = None
        """Time (epoch seconds) at which the graph ends; None for now."""
        self._repaint = repaint
        self._past = PastRates()
        """Past shown in the graph, empty without one."""
        self._steps = 0
        """Steps of the past that the graph has room for."""
        self._rows = 0
        """Rows of the graph."""
        self._made: tuple[Line, ...] = ()
        """All lines, as made for the wish."""

    def wish(self, scene: Scene) -> Wish:
        """Wish for its lines, with as many rows of the graph as there is room for."""
        graphed = graphed_scan(scene.frame)
        running = graphed is not None and graphed.scan.active
        past = graphed.past if graphed is not None else PastRates()
        if self.until is not None and not past.begin < self.until < past.end:
            self.until = None
        self._made, self._rows = self._lines_of(scene, int(running)), 0
        # With one row of a graph, even for a finished scan.
        steady = len(self._made) + (graphed is not None and not running)
        if graphed is not None:
            share = graph_rows if running else past_graph_rows
            self._rows = share(scene, len(self._made))
        self._past = past if self._rows else PastRates()
        self.keys = _GRAPH_KEYS if self._past.rates else ()
        marks = SCROLL_MARKS * (scene.zoomed == self.pane_id)
        columns = graph_width(scene.width - marks, self._rows, scene.look.number)
        self._steps = graph_values(columns, self._rows, scene.look.glyphs)
        if self._rows != running:
            self._made = self._lines_of(scene, self._rows)
        return Wish(self.pane_id, self.place, len(self._made), steady=steady)

    def paint(self, scene: Scene) -> None:
        """Draw the lines; the first is a title, which shows the focus."""
        if 0 < scene.lines < len(self._made) and scene.zoomed is None:
            self._made = self._lines_of(scene, self._rows, scene.lines)
        head, *rest = self._made
        title = (Span(head[0].text, "title"), *head[1:]) if head else (Span(" ", "title"),)
        self.show(rest, title)

    def _lines_of(self, scene: Scene, graph: int, room: int | None = None) -> tuple[Line, ...]:
        whole = scene.zoomed == self.pane_id  # then the title leaves room for the scroll marks
        return scan_lines(
            scene.frame,
            scene.look,
            scene.width - SCROLL_MARKS * whole,
            compact=scene.compact and not whole,
            roomy=scene.height >= TALL or whole,
            whole=whole,
            graph=graph,
            until=self.until,
            room=room,
        )

    def to_now(self) -> bool:
        """Let the graph end now; return whether it did not."""
        was_earlier = self.until is not None
        if was_earlier:
            self.until = None
            self._repaint()
        return was_earlier

    def _scroll(self, steps: int) -> None:
        """Scroll the graph by steps, back (below 0) or forward, within the scan."""
        past, before = self._past, self.until
        first = past.begin + min(self._steps, len(past.rates)) * past.step
        wanted = max(first, (self.until or past.end) + steps * past.step)
        self.until = wanted if wanted < past.end else None
        if steps < 0 and self.until == before:
            self.app.answer(_ALL_SHOWN, 3)
        self._repaint()

    def sideways(self, direction: int) -> None:
        """Scroll by an eighth of what is shown."""
        self._scroll(direction * max(1, self._steps // 8))

    def page(self, pages: int) -> None:
        """Scroll the graph by half of what is shown; without a graph, scroll the lines."""
        if not self._past.rates:
            super().page(pages)
            return
        self._scroll(pages * max(1, self._steps // 2))

    def edge(self, direction: int) -> None:
        """Go to the start of the scan, or back to now; without a graph, scroll the lines."""
        if not self._past.rates:
            super().edge(direction)
            return
        self._scroll(direction * len(self._past.rates))


def graph_rows(scene: Scene, lines: int) -> int:
    """Return the rows of the graph of a running scan; ``lines`` already has one of them.

    Only a few heights are used, so that one device more or less seldom moves anything.
    """
    room = scene.room - lines
    if scene.zoomed == ScanPane.pane_id:
        return min(room, _GRAPH_MOST) if room > 1 else 1
    if scene.height < _GRAPH_FROM:
        return 1
    free = spare(scene.width, room, scene.below)
    # A tall screen has a graph of several rows in any case.
    least = _GRAPH_ROWS[-1] if scene.height >= TALL else 1
    return next((rows for rows in _GRAPH_ROWS if rows <= free), least)


def past_graph_rows(scene: Scene, lines: int) -> int:
    """Return the rows of a finished scan's graph, 0 without room; ``lines`` has none of them."""
    room = scene.room - lines
    if scene.zoomed == ScanPane.pane_id:
        return max(0, min(room - 1, _GRAPH_MOST))
    free = spare(scene.width, room, scene.below, full=True)
    return _GRAPH_OVER if scene.height >= _GRAPH_FROM and free > _GRAPH_OVER else 0


_TOGETHER = 3
"""Number of devices with the same work from which they share an entry."""
_LAST_NAME = 24
"""Cells of the name of the device that ends last."""


def activity_entries(views: Sequence[ActivityView], ink: Ink) -> Iterator[list[Line]]:
    """Yield the lines of each activity; devices with the same work share an entry, unless roomy."""
    at_work: defaultdict[str, list[ActivityView]] = defaultdict(list)
    for view in () if ink.roomy else filter(_is_at_work, views):
        at_work[view.activity.kind].append(view)
    for view in views:
        fellows = at_work.get(view.activity.kind, [])
        if len(fellows) < _TOGETHER or not _is_at_work(view):
            yield activity_lines(view, ink)
        elif view is fellows[0]:
            yield _together(fellows, ink)


def _is_at_work(view: ActivityView) -> bool:
    activity = view.activity
    counted = activity.done_bytes is not None and activity.total_bytes is not None
    return activity.state == "running" and counted


def _together(views: Sequence[ActivityView], ink: Ink) -> list[Line]:
    """Return the total progress of several devices, and the ETA of the slowest."""
    kind = views[0].activity.kind
    done = sum(view.activity.done_bytes or 0 for view in views)
    total = sum(view.activity.total_bytes or 0 for view in views)
    head: Line = (Span(f" {kind} of {len(views)} devices ", "bold"), Span("running "))
    lines = [barred(head, None, done, total, ink)]
    last = max(views, key=lambda view: (view.estimate.eta is None, view.estimate.eta or 0.0))
    name = ink.look.middle(last.activity.vdev or "", _LAST_NAME)
    parts: list[Line] = [eta_line("slowest ETA", last.estimate, ink)]
    rates = [view.rate for view in views if view.rate is not None]
    if rates:
        parts.append((Span("at ", "dim"), Span(ink.look.rate(sum(rates)))))
    return [*lines, *packed([*parts, (Span("last ", "dim"), Span(name))], ink)]


def activity_lines(view: ActivityView, ink: Ink) -> list[Line]:
    """Return the lines of a removal, expansion, checkpoint, trim, initialize or rebalance."""
    activity, look = view.activity, ink.look
    if activity.discarding:
        left = f"discarding, {look.size(activity.total_bytes)} remaining"
        return [(Span(f" {activity.kind} ", "bold"), Span(left))]
    state = look.text(activity.state)
    name = subject(activity.kind, activity.vdev, len(state) + 3, activity.total_bytes, ink)
    role = "" if activity.state == "running" else "notice"
    head: Line = (Span(f" {name} ", "bold"), Span(f"{state} ", role))
    if activity.state not in ("running", "paused", "waiting"):
        return _activity_ended(head, view, ink)
    if activity.percent is None and activity.total_bytes is None:
        return [(*head, Span(look.text(activity.note)))]
    line = barred(head, activity.percent, activity.done_bytes, activity.total_bytes, ink)
    return [line, *packed(_activity_told(view, ink), ink)]


def _activity_told(view: ActivityView, ink: Ink) -> list[Line]:
    """Return ETA, rate and notes of an activity, or that it is stuck."""
    activity, look = view.activity, ink.look
    if view.stalled is not None:
        stuck = f"STUCK: no progress for {units.duration(view.stalled)}"
        return [(Span(stuck, "error"),), (Span(f"  {look.text(look.said(view.advice))}"),)]
    parts = [eta_line("ETA", view.estimate, ink), *zpool_says(activity.zpool_eta)]
    if view.rate is not None:
        parts.append((Span("at ", "dim"), Span(look.rate(view.rate))))
    told = (activity.note, look.said(view.advice))
    return [*parts, *((Span(look.text(text), "dim"),) for text in told if text)]


def _activity_ended(head: Line, view: ActivityView, ink: Ink) -> list[Line]:
    activity, look = view.activity, ink.look
    facts: list[str] = []
    moment = activity.end if activity.end is not None else activity.start
    if moment is not None and activity.state == "exists":
        age = units.duration(max(0.0, ink.frame.t - moment))
        facts.append(f"for {age}, since {look.when(moment, ink.frame.t)}")
    elif moment is not None:
        facts.append(look.when(moment, ink.frame.t))
    moved = activity.total_bytes if activity.done_bytes is None else activity.done_bytes
    if moved is not None:
        facts.append(look.size(moved))
    if activity.note:
        facts.append(look.text(activity.note))
    is_counted = any(scan.working is not None for scan in ink.frame.scans)
    if activity.kind == SCRUB_HOURS and is_counted and not ink.roomy:
        facts.append("the ETA includes the pauses")
    text = "  ".join(facts)
    line: Line = (*head, Span(text))
    if width_of(line) <= ink.width:
        return [line]
    return [head, *beside(Span("  "), text, ink.width - 1)]


_BETWEEN = "   "
_PERCENT = 8
_AMOUNT = 16
_OF = "  {} of {} "
"""The amounts of what is done and in total, and the least cells for both."""
_LEAST_NAME = 8
_LEAST_BAR = 4
"""Least cells of a bar that tells more than its percentage."""


def subject(work: str, vdev: str | None, beside: int, total: int | None, ink: Ink) -> str:
    """Return ``rebuild of mirror-0``; a long name is cut so that the line's figures fit.

    ``beside``: cells of other text before the figures; ``total``: bytes in total.
    """
    if not vdev:
        return ink.look.text(work)
    widest = max(ink.look.number, len(ink.look.size(total)))
    amount = len(_OF.format("", "")) + 2 * widest
    room = ink.width - beside - _PERCENT - 2 - amount - len(f"{work} of ")
    name = ink.look.middle(vdev, max(_LEAST_NAME, room))
    return work_name(ink.look.text(work), name)


def barred(
    head: Line,
    percent: float | None,
    done: int | None,
    total: int | None,
    ink: Ink,
    *,
    thin: bool = False,
) -> Line:
    """Return ``head`` with a percentage, a bar, and the amounts at the right edge.

    An unknown percentage is calculated if both amounts are known.
    If narrow, the bar is dropped first, then the middle of the name in the head is cut
    (``subject``), then the total and the amount done are dropped: a cut number would be wrong.
    """
    look = ink.look
    if percent is None and total and done is not None:
        percent = 100.0 * done / total
    shown = "-" if percent is None else f"{percent:.1f} %"
    room = ink.width - width_of(head) - _PERCENT - 2
    known = done is not None or total is not None
    whole = f"{_OF.format(look.size(done), look.size(total)):>{_AMOUNT}}" if known else ""
    amount = next((said for said in (whole, f"  {look.size(done)} ") if len(said) <= room), "")
    share, cells = None if percent is None else percent / 100, max(0, room - len(amount))
    drawn = bar(share, cells, look.glyphs, thin=thin)
    if cells < _LEAST_BAR:
        drawn = (Span(" " * cells),)
    return (*head, Span(f"{shown:>{_PERCENT}}  "), *drawn, Span(amount))


def eta_line(label: str, estimate: Estimate, ink: Ink) -> Line:
    """Return ``ETA 17h52m  ends tomorrow 06:33  (16h10m to 21h40m)``, or why there is none."""
    if estimate.eta is None:
        why = ink.look.text(estimate.reason.removeprefix(f"{MEASURING}, "))
        return (Span(f"{label} ", "dim"), Span(f"{estimate.lacking}: {why}"))
    now = ink.frame.t
    spans = [
        Span(f"{label} ", "dim"),
        Span(units.duration(estimate.eta), "bold"),
        Span(f"  {'ends ' * (label == 'ETA')}{ink.look.when(now + estimate.eta, now)}"),
    ]
    if span := range_words(estimate):
        spans.append(Span(f"  {span}", "dim"))
    return tuple(spans)


def zpool_says(eta: float | None) -> Iterator[Line]:
    """Yield zpool's own estimate, if it prints one."""
    if eta is not None:
        yield (Span("zpool says ", "dim"), Span(units.duration(eta)))


def packed(parts: Sequence[Line], ink: Ink) -> list[Line]:
    """Join parts on as few lines as hold them."""
    return [(Span(" "), *line) for line in joined(parts, _BETWEEN, ink.width - 2)]


def one_line(parts: Sequence[Line], ink: Ink) -> list[Line]:
    """Return a line of the parts that fit in full; a blank line without parts."""
    if ink.whole:
        return packed(parts, ink) or [()]
    shown: list[Line] = []
    for part in parts:
        if not shown or len(joined([*shown, part], _BETWEEN, ink.width - 2)) == 1:
            shown.append(part)
    return packed(shown, ink)[:1] or [()]
