"""Several pools: the line that switches between them, and the list of all, worst first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from zconsole import units
from zconsole.timeline.frame import SET_HERE, Frame
from zconsole.ui.display_format import DisplayFormat, percent
from zconsole.ui.panes.balance import fill_role
from zconsole.ui.panes.header import health_word
from zconsole.ui.widgets.draw import Line, Span, broken, crop, fit, width_of
from zconsole.ui.widgets.graph import bar, scale, sparkline
from zconsole.ui.widgets.short_names import middle

_POOL = 16
_NAMES = (10, 34)
"""Cells that the names get at least and at most."""
_NOTE = 16
"""Cells that must be left over for a reason to be begun."""
_SEVERITIES = ("error", "warning", "notice", "ok")
"""How bad a pool's health is, the worst first."""


def tab_line(frames: Sequence[Frame], current: int, look: DisplayFormat, width: int) -> Line:
    """Every pool with its health, the current one marked; the tabs before it go when narrow."""
    tabs = [_tab(frame, i == current, look, f"show_pool({i})") for i, frame in enumerate(frames)]
    start = 0
    while start < current and sum(map(width_of, tabs[start : current + 1])) > width - 2:
        start += 1
    left = look.glyphs.ellipsis if start else " "
    line: Line = (Span(left, "title"), *(span for tab in tabs[start:] for span in tab))
    line = crop(line, width, look.glyphs.ellipsis)
    return (*line, Span(" " * (width - width_of(line)), "title"))


def _tab(frame: Frame, current: bool, look: DisplayFormat, action: str) -> Line:
    """A pool's name and health; a click on it shows the pool."""
    name = middle(look.text(frame.pool), _POOL, look.glyphs.ellipsis)
    bad = {"warning": "warning", "error": "error"}.get(frame.health.severity)
    word = look.text(frame.health.word)
    if current:
        return (Span(f" {name} {word} ", "tab"),)
    return (Span(f" {name} ", "title", action), Span(f"{word} ", bad or "title", action))


class PoolColumn(NamedTuple):
    """One fact of every pool."""

    title: str
    width: int
    needs: int
    """Columns of the screen from which on it is shown."""
    cell: Callable[[Frame, DisplayFormat, int], Line]
    """What it says of a pool in a number of cells; padded by whoever draws it."""
    right: bool = False


def by_trouble(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The worst first: by health, then those at work, then by the redundancy left; then by name."""
    return tuple(sorted(frames, key=_rank))


def _rank(frame: Frame) -> tuple[int, bool, float, str]:
    left = min((entry.left for entry in frame.redundancy), default=math.inf)
    idle = frame.scan is None or not frame.scan.scan.active
    severity = frame.health.severity
    bad = _SEVERITIES.index(severity) if severity in _SEVERITIES else len(_SEVERITIES)
    return bad, idle, left, frame.pool


def overview_head(frames: Sequence[Frame], look: DisplayFormat, width: int) -> Line:
    """The headings."""
    table = _table(frames, look, width)
    titles = "".join(_title(column, table.gap) for column in table.columns)
    return (Span(f" {fit('POOL', table.name)}{titles}{'  WHY' * table.reasons}", "title"),)


def _title(column: PoolColumn, gap: int) -> str:
    """With the gap before it, which a title at the right may take up."""
    width = column.width + gap
    if column.right:
        return fit(column.title, width, right=True)
    return fit(" " * gap + column.title, width)


def overview_lines(frames: Sequence[Frame], look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """One line a pool, in the order given: health, redundancy, what runs on it, fill."""
    table = _table(frames, look, width)
    return tuple(crop(_pool(f, look, table), width, look.glyphs.ellipsis) for f in frames)


def overview_about(frame: Frame, look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """Every reason to look at a pool, in full; nothing where there is none."""
    said = f" {look.glyphs.dot} ".join(look.text(reason) for reason in _reasons(frame))
    return tuple((Span(f" {line}"),) for line in broken(said, max(20, width - 2))) if said else ()


def _reasons(frame: Frame) -> tuple[str, ...]:
    """Why its health is what it is; then a scrub that is overdue, which changes no health."""
    overdue = (frame.scrub.words,) if frame.scrub.overdue else ()
    return (*frame.health.reasons, *overdue)


class _Table(NamedTuple):
    """What there is room for: cells of the names, columns, and whether reasons follow them."""

    name: int
    columns: tuple[PoolColumn, ...]
    reasons: bool
    gap: int
    """Blanks before each column."""


def _table(frames: Sequence[Frame], look: DisplayFormat, width: int) -> _Table:
    """Long names come before columns: they tell hosts apart."""
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
    for column in table.columns:
        cell = crop(column.cell(frame, look, column.width), column.width, ellipsis)
        pad = Span(" " * (column.width - width_of(cell)))
        spans += [gap, pad, *cell] if column.right else [gap, *cell, pad]
    if table.reasons and (reasons := _reasons(frame)):
        spans.append(Span("  "))
        spans.append(Span(look.text(reasons[0]), "dim"))
    return tuple(spans)


def _state(frame: Frame, look: DisplayFormat, width: int) -> Line:
    """The word of health, and how old the sample is that the row shows, where there is room."""
    word = health_word(frame, look)
    if not frame.problem or frame.stale_seconds is None:
        return word
    aged = (*word, Span(units.duration(frame.stale_seconds), "dim"))
    return aged if width_of(aged) <= width else word


def _left(frame: Frame, *_: object) -> Line:
    """How many more devices the weakest vdev can lose."""
    left = min((entry.left for entry in frame.redundancy), default=None)
    if left is None or (left and frame.untold):  # what isn't known may be worse
        return (Span("-", "dim"),)
    alarming = frame.health.severity != "ok"
    return (Span(str(left) if left else "NONE", "error" if alarming and not left else ""),)


class _Work(NamedTuple):
    """What runs on a pool: its scan, else its first activity, such as a rebalance."""

    name: str
    held: bool
    """Whether it does not go on: it is paused, waits or was interrupted."""
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
        idle = of.state in ("finished", "canceled", "exists", SET_HERE) or of.kind == "scrub hours"
        if not idle:
            held = of.state != "running"
            return _Work(of.kind, held, of.percent, each.estimate.eta, each.rate)
    return None


def _function(frame: Frame, look: DisplayFormat, width: int) -> Line:
    work = _work(frame)
    name = fit(look.text(work.name), width, ellipsis=look.glyphs.ellipsis) if work else ""
    return (Span(name.rstrip(), "notice" if work and work.held else ""),)


def _function_apart(frame: Frame, look: DisplayFormat, width: int) -> Line:
    """The same a blank further on: behind the redundancy it would read as so many resilvers."""
    return (Span(" "), *_function(frame, look, width - 1))


def _scan_bar(frame: Frame, look: DisplayFormat, width: int) -> Line:
    if (work := _work(frame)) is None:
        return ()
    return bar(None if work.percent is None else work.percent / 100, width, look.glyphs)


def _done(frame: Frame, *_: object) -> Line:
    share = work.percent if (work := _work(frame)) is not None else None
    return (Span("" if share is None else percent(share / 100)),)


def _eta(frame: Frame, *_: object) -> Line:
    eta = work.eta if (work := _work(frame)) is not None else None
    return () if eta is None else (Span(units.duration(eta), "bold"),)


def _rate(frame: Frame, look: DisplayFormat, _: int) -> Line:
    work = _work(frame)
    return (Span("" if work is None else look.rate(work.rate)),)


def _spark(frame: Frame, look: DisplayFormat, width: int) -> Line:
    view = frame.scan
    if view is None or not view.scan.active:
        return ()
    tail = frame.series.tail(view.key, "issue_rate", width)
    return (Span(sparkline(tail, width, scale(tail), look.glyphs), "spark"),)


def _share(frame: Frame) -> float | None:
    root = frame.root
    if root is not None and root.size_bytes and root.alloc_bytes is not None:
        return root.alloc_bytes / root.size_bytes
    vdevs = frame.balance.vdevs
    size = sum(vdev.size_bytes or 0 for vdev in vdevs)
    return sum(vdev.alloc_bytes or 0 for vdev in vdevs) / size if size else None


def _fill(frame: Frame, *_: object) -> Line:
    return (Span(percent(_share(frame), 0)),)


def _fill_bar(frame: Frame, look: DisplayFormat, width: int) -> Line:
    return bar(_share(frame), width, look.glyphs, fill_role(_share(frame)))


_WIDE = 97
"""Columns of the screen from which on all that counts has room with two blanks between."""
_COLUMNS = (
    PoolColumn(" STATE", 14, 0, _state),
    PoolColumn("REDUNDANCY", 8, 0, _left, right=True),
    PoolColumn("WORK", 9, 0, _function),
    PoolColumn("", 8, 0, _scan_bar),
    PoolColumn("DONE", 7, 0, _done, right=True),
    PoolColumn("ETA", 7, 0, _eta, right=True),
    PoolColumn("RATE", 7, 106, _rate, right=True),
    PoolColumn("", 12, 0, _spark),
    PoolColumn("FILL", 5, 0, _fill, right=True),
    PoolColumn("", 8, 132, _fill_bar),
)
_NARROW = (
    PoolColumn(" STATE", 14, 0, _state),
    PoolColumn("REDUNDANCY", 9, 0, _left, right=True),
    PoolColumn(" WORK", 10, 80, _function_apart),
    PoolColumn("", 5, 70, _scan_bar),
    PoolColumn("DONE", 7, 0, _done, right=True),
    PoolColumn("ETA", 6, 0, _eta, right=True),
    PoolColumn("", 5, 64, _spark),
    PoolColumn("FILL", 5, 57, _fill, right=True),
)
"""Below that, with one blank between most: a bar and work only where the sparkline fits as well."""
