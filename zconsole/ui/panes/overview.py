"""Several pools: the line that switches between them and the list of all."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole import units
from zconsole.monitor.frame import Frame
from zconsole.ui.display_format import DisplayFormat, percent
from zconsole.ui.panes.header import health_word
from zconsole.ui.widgets.bars import bar
from zconsole.ui.widgets.draw import Line, Span, crop, fit, width_of
from zconsole.ui.widgets.short_names import middle

_POOL, _HEALTH, _BAR = 16, 14, 12


def tab_line(frames: Sequence[Frame], current: int, look: DisplayFormat, width: int) -> Line:
    """Every pool with its health, the current one marked; the tabs before it go when narrow."""
    tabs = [_tab(frame, i == current, look) for i, frame in enumerate(frames)]
    start = 0
    while start < current and sum(map(width_of, tabs[start : current + 1])) > width - 2:
        start += 1
    left = look.glyphs.ellipsis if start else " "
    line: Line = (Span(left, "title"), *(span for tab in tabs[start:] for span in tab))
    line = crop(line, width, look.glyphs.ellipsis)
    return (*line, Span(" " * (width - width_of(line)), "title"))


def _tab(frame: Frame, current: bool, look: DisplayFormat) -> Line:
    name = middle(look.text(frame.pool), _POOL, look.glyphs.ellipsis)
    bad = {"warning": "warning", "error": "error"}.get(frame.health.severity)
    word = look.text(frame.health.word)
    if current:
        return (Span(f" {name} {word} ", "tab"),)
    return (Span(f" {name} ", "title"), Span(f"{word} ", bad or "title"))


def overview_lines(frames: Sequence[Frame], look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """One line a pool: health, fill, and what runs on it."""
    return tuple(_pool(frame, look, width) for frame in frames)


def _pool(frame: Frame, look: DisplayFormat, width: int) -> Line:
    name = fit(middle(look.text(frame.pool), _POOL, look.glyphs.ellipsis), _POOL)
    root = frame.root
    fill = None
    if root is not None and root.size_bytes and root.alloc_bytes is not None:
        fill = root.alloc_bytes / root.size_bytes
    word = health_word(frame, look)
    line: Line = (
        Span(f" {name} ", "bold"),
        *word,
        Span(" " * max(1, _HEALTH - width_of(word))),
        *bar(fill, _BAR, look.glyphs),
        Span(f"{percent(fill, 0):>6}  "),
        *_doing(frame, look),
    )
    return crop(line, width, look.glyphs.ellipsis)


def _doing(frame: Frame, look: DisplayFormat) -> Line:
    scan = frame.scan
    if scan is None or not scan.scan.active:
        reasons = frame.health.reasons
        return (Span(look.text(reasons[0]) if reasons else "", "dim"),)
    done = "-" if scan.percent is None else f"{scan.percent:.1f} %"
    eta = scan.estimate.eta
    left = "" if eta is None else f"  ETA {units.duration(eta)}"
    return (Span(f"{look.text(scan.scan.function)} {done}{left}"),)
