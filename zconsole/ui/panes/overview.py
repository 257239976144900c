"""Overview of several pools: the tabs of the main screen, and the list of all pools."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from zconsole import units
from zconsole.timeline.frame import HELD_VDEVS, SCRUB_HOURS, SET_HERE, Frame
from zconsole.ui.dialogs.screens import FilteredScreen, Offers, PickList, PickScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.balance import fill_role
from zconsole.ui.panes.header import health_word
from zconsole.ui.panes.reasons import as_called, bays_of
from zconsole.ui.view_state import ViewState, place_of
from zconsole.ui.widgets.draw import Line, Span, broken, crop, fit, middle, width_of
from zconsole.ui.widgets.graph import bar, scale, sparkline
from zconsole.units import percent

_FILTER = "show only: name, state, reason, work"
_POOL = 16
_NAMES = (10, 34)
"""Least and most cells of the names."""
_NOTE = 16
"""Cells that must be left to begin a reason in a line."""
_SEVERITIES = ("error", "warning", "notice", "ok")
"""Severities of health, the worst first."""


def tab_line(frames: Sequence[Frame], current: int, look: DisplayFormat, width: int) -> Line:
    """Return tabs of all pools with their health; if narrow, those before the current one go."""
    tabs = [_tab(frame, i == current, look, f"show_pool({i})") for i, frame in enumerate(frames)]
    start = 0
    while start < current and sum(map(width_of, tabs[start : current + 1])) > width - 2:
        start += 1
    left = look.glyphs.ellipsis if start else " "
    line: Line = (Span(left, "title"), *(span for tab in tabs[start:] for span in tab))
    line = look.crop(line, width)
    return (*line, Span(" " * (width - width_of(line)), "title"))


def _tab(frame: Frame, current: bool, look: DisplayFormat, action: str) -> Line:
    """Return the tab of a pool; a click on it shows the pool."""
    name = look.middle(frame.pool, _POOL)
    bad = {"warning": "warning", "error": "error"}.get(frame.health.severity)
    word = look.text(frame.health.word)
    if current:
        return (Span(f" {name} {word} ", "tab"),)
    return (Span(f" {name} ", "title", action), Span(f"{word} ", bad or "title", action))


class PoolColumn(NamedTuple):
    """A column of the list."""

    fact: str
    title: str
    width: int
    needs: int = 0
    """Columns of the screen from which it is shown."""
    right: bool = False


def by_trouble(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Sort frames by health, then running scans, then least redundancy, then name."""

    def _rank(frame: Frame) -> tuple[int, bool, float, str]:
        left = min((entry.left for entry in frame.redundancy), default=math.inf)
        idle = frame.scan is None or not frame.scan.scan.active
        severity = frame.health.severity
        bad = _SEVERITIES.index(severity) if severity in _SEVERITIES else len(_SEVERITIES)
        return bad, idle, left, frame.pool

    return tuple(sorted(frames, key=_rank))


SORTS: dict[str, Callable[[Frame], tuple[float, str]]] = {
    "trouble": lambda _: (0.0, ""),
    "name": lambda frame: (0.0, frame.pool),
    "fill": lambda frame: (-(_share(frame) or 0.0), ""),
    "eta": lambda frame: (-(work.eta or 0.0) if (work := _work(frame)) else 1.0, ""),
}
"""Orders that ``s`` cycles through: worst first, by name, fullest first, slowest first."""


def arranged(frames: Sequence[Frame], sort: str, wanted: str = "") -> tuple[Frame, ...]:
    """Return the pools whose name, state, reasons or work match, sorted; ties by trouble."""
    needle = wanted.casefold()

    def _matches(frame: Frame) -> bool:
        work = _work(frame)
        words = (frame.pool, frame.health.word, *_reasons(frame), work.name if work else "")
        return any(needle in word.casefold() for word in words)

    return tuple(sorted(by_trouble([*filter(_matches, frames)]), key=SORTS[sort]))


def overview_head(
    frames: Sequence[Frame],
    look: DisplayFormat,
    width: int,
    sort: str = "trouble",
    wanted: str = "",
) -> Line:
    """Return the headings, with a mark on the one sorted by, and the filter after the first."""
    table = _table(frames, look, width)
    mark = look.glyphs.sorted
    titles = "".join(
        # A right-aligned heading may extend into the gap before it.
        fit(column.title + mark * (column.fact == sort), column.width + table.gap, right=True)
        if column.right
        else fit(" " * table.gap + column.title, column.width + table.gap)
        for column in table.columns
    )
    name = f"POOL{mark * (sort == 'name')}{f' /{look.text(wanted)}' * bool(wanted)}"
    first = fit(name, table.name, ellipsis=look.glyphs.ellipsis)
    return (Span(f" {first}{titles}{'  WHY' * table.reasons}", "title"),)


def overview_lines(frames: Sequence[Frame], look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """Return a line per pool, in the given order: health, redundancy, work, fill."""
    table = _table(frames, look, width)
    return tuple(look.crop(_pool(f, look, table), width) for f in frames)


def overview_about(frame: Frame, look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """Return all reasons to look at a pool, in full; empty if there are none."""
    said = f" {look.glyphs.dot} ".join(look.text(reason) for reason in _reasons(frame))
    return tuple((Span(f" {line}"),) for line in broken(said, max(20, width - 2))) if said else ()


def _reasons(frame: Frame) -> tuple[str, ...]:
    """Return the reasons for the health, then an overdue scrub, which doesn't affect the health."""
    overdue = (frame.scrub.words,) if frame.scrub.overdue else ()
    bays = bays_of(frame) if frame.health.reasons else {}
    # As commands: the keys of actions are those of the main screen.
    return (*(as_called(str(reason), bays) for reason in frame.health.reasons), *overdue)


class _Table(NamedTuple):
    """Layout of the list: width of the names, columns, and whether reasons follow."""

    name: int
    columns: tuple[PoolColumn, ...]
    reasons: bool
    gap: int
    """Spaces before each column."""


def _table(frames: Sequence[Frame], look: DisplayFormat, width: int) -> _Table:
    """Return the layout for a width; long names come before columns, as they tell hosts apart."""
    longest = max((width_of((Span(look.text(frame.pool)),)) for frame in frames), default=0)
    wanted = max(_NAMES[0], min(longest, _NAMES[1]))
    left = width - (wanted - _NAMES[0])
    every, gap = (_COLUMNS, 2) if left >= _WIDE else (_NARROW, 1)
    columns = tuple(column for column in every if left >= column.needs)
    room = width - 1 - sum(column.width + gap for column in columns)
    name = max(_NAMES[0], min(wanted, room))
    return _Table(name, columns, room - name - gap >= _NOTE, gap)


def _pool(frame: Frame, look: DisplayFormat, table: _Table) -> Line:
    ellipsis, gap = look.glyphs.ellipsis, Span(" " * table.gap)
    name = fit(middle(look.text(frame.pool), table.name, ellipsis), table.name)
    spans = [Span(f" {name}", "bold")]
    work, share = _work(frame), _share(frame)
    for column in table.columns:
        cell = crop(_cell(column, frame, work, share, look), column.width, ellipsis)
        pad = Span(" " * (column.width - width_of(cell)))
        spans += [gap, pad, *cell] if column.right else [gap, *cell, pad]
    if table.reasons and (reasons := _reasons(frame)):
        spans.append(Span("  "))
        spans.append(Span(look.text(reasons[0]), "dim"))
    return tuple(spans)


class _Work(NamedTuple):
    """Work on a pool: its running scan, else its first activity, such as a rebalance."""

    name: str
    held: bool
    """Whether it is paused, waits or was interrupted."""
    percent: float | None
    eta: float | None
    rate: float | None


def _work(frame: Frame) -> _Work | None:
    if (view := frame.scan) is not None and view.scan.active:
        scan = view.scan
        if frame.suspended:  # nothing moves
            return _Work(scan.function, True, view.percent, None, None)
        held = scan.state == "paused"
        return _Work(scan.function, held, view.percent, view.estimate.eta, view.issue_rate)
    for each in frame.activities:
        of = each.activity
        idle = of.state in ("finished", "canceled", "exists", SET_HERE)
        idle = idle or of.kind in (SCRUB_HOURS, HELD_VDEVS)
        if not idle:
            held = of.state != "running"
            return _Work(of.kind, held, of.percent, each.estimate.eta, each.rate)
    return None


def _cell(
    column: PoolColumn, frame: Frame, work: _Work | None, share: float | None, look: DisplayFormat
) -> Line:
    """Return a pool's cell; ``share`` is the used part of the pool, ``work`` runs on it."""
    width, view = column.width, frame.scan
    said: Line = ()
    match column.fact:
        case "state":  # with the sample's age if it is late and fits
            said = health_word(frame, look)
            if frame.problem and frame.stale_seconds is not None:
                aged = (*said, Span(units.duration(frame.stale_seconds), "dim"))
                said = aged if width_of(aged) <= width else said
        case "redundancy":  # devices that the weakest vdev can lose
            left = min((entry.left for entry in frame.redundancy), default=None)
            alarming = frame.health.severity != "ok" and not left
            said = (Span(str(left or "NONE"), "error" * alarming),)
            if left is None or (left and frame.untold):  # what isn't known may be worse
                said = (Span("-", "dim"),)
        case "rates" if view is not None and view.scan.active:
            tail = frame.series.tail(view.key, "issue_rate", width)
            said = (Span(sparkline(tail, width, scale(tail), look.glyphs), "spark"),)
        case "fill":
            said = (Span(percent(share)),)
        case "fill bar":
            said = bar(share, width, look.glyphs, fill_role(share))
        case _ if work is not None:
            said = _work_cell(column, work, look)
    return said


def _work_cell(column: PoolColumn, work: _Work, look: DisplayFormat) -> Line:
    done = None if work.percent is None else work.percent / 100
    match column.fact:
        case "work":
            apart = Span(" " * column.title.startswith(" "))
            name = look.cut(work.name, column.width - len(apart.text))
            return (apart, Span(name, "notice" * work.held))
        case "bar":
            return bar(done, column.width, look.glyphs)
        case "done":
            return (Span("" if done is None else percent(done, 1)),)
        case "rate":
            return (Span(look.rate(work.rate)),)
        case "eta" if work.eta is not None:
            return (Span(units.duration(work.eta), "bold"),)
    return ()


def _share(frame: Frame) -> float | None:
    root = frame.root
    if root is not None and root.size_bytes and root.alloc_bytes is not None:
        return root.alloc_bytes / root.size_bytes
    vdevs = frame.balance.vdevs
    size = sum(vdev.size_bytes or 0 for vdev in vdevs)
    return sum(vdev.alloc_bytes or 0 for vdev in vdevs) / size if size else None


_WIDE = 97
"""Columns of the screen from which all important columns fit with two spaces between."""
_COLUMNS = (
    PoolColumn("state", " STATE", 14),
    PoolColumn("redundancy", "REDUNDANCY", 8, right=True),
    PoolColumn("work", "WORK", 9),
    PoolColumn("bar", "", 8),
    PoolColumn("done", "DONE", 7, right=True),
    PoolColumn("eta", "ETA", 7, right=True),
    PoolColumn("rate", "RATE", 7, 106, right=True),
    PoolColumn("rates", "", 12),
    PoolColumn("fill", "FILL", 5, right=True),
    PoolColumn("fill bar", "", 8, 132),
)
_NARROW = (
    PoolColumn("state", " STATE", 14),
    PoolColumn("redundancy", "REDUNDANCY", 9, right=True),
    # A space in the heading sets it apart: after the redundancy it would read as a number of
    # resilvers.
    PoolColumn("work", " WORK", 10, 80),
    PoolColumn("bar", "", 5, 70),
    PoolColumn("done", "DONE", 7, right=True),
    PoolColumn("eta", "ETA", 6, right=True),
    PoolColumn("rates", "", 5, 64),
    PoolColumn("fill", "FILL", 5, 57, right=True),
)
"""Columns on screens narrower than _WIDE, mostly one space apart; bar and work need room beside the
sparkline."""


class OverviewScreen(PickScreen, FilteredScreen[int | None], groups=("Menu", "Overview")):
    """List of pools; returns the index of the chosen one in the view state."""

    hint = _FILTER

    def __init__(self, state: ViewState) -> None:
        self._state = state
        self._sort = "trouble"
        self._shown: tuple[Frame, ...] = arranged(state.frames, self._sort)
        self._at = state.pool
        """Pool at the cursor, or the last one before nothing matched."""
        start = place_of(state.pool, self._shown)
        super().__init__(PickList("POOLS", self._lines, start, about=self._reasons))

    def title_line(self, width: int) -> Line:
        """Return the headings."""
        return overview_head(self._shown, self._state.look, width, self._sort, self.wanted)

    def draw(self) -> None:
        """Draw the newest round, with the cursor on the same pool."""
        self._at = self._pool_at_cursor or self._at
        self._shown = arranged(self._state.frames, self._sort, self.wanted)
        self.view.cursor = place_of(self._at, self._shown)
        super().draw()
        self.view.reveal()

    @property
    def _pool_at_cursor(self) -> str | None:
        cursor = self.view.cursor
        return self._shown[cursor].pool if cursor < len(self._shown) else None

    def copies(self) -> Offers:
        """Return the name of the pool at the cursor."""
        pool = self._pool_at_cursor
        return (("pool", pool),) if pool is not None else ()

    def action_open(self) -> None:
        """Close the screen with the pool at the cursor, if any."""
        names = [frame.pool for frame in self._state.frames]
        if (pool := self._pool_at_cursor) is not None:
            self.dismiss(names.index(pool) if pool in names else None)

    def action_sort(self) -> None:
        """Switch to the next sort order."""
        orders = list(SORTS)
        self._sort = orders[(orders.index(self._sort) + 1) % len(orders)]
        self.update()

    def _reasons(self, index: int, look: DisplayFormat, width: int) -> Sequence[Line]:
        if index >= len(self._shown):
            return ()
        return overview_about(self._shown[index], look, width)

    def _lines(self, look: DisplayFormat, width: int) -> Sequence[Line]:
        if not self._shown:
            return ((Span(" nothing matches", "dim"),),)
        return overview_lines(self._shown, look, width)
