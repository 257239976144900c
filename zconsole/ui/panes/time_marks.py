"""Marks of what happened, on the time axis of a graph: the scan's and those of devices."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole.timeline.frame import DONE, Frame
from zconsole.timeline.scan_rate import Mark
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import fit
from zconsole.ui.widgets.time_axis import TimeAxis, round_times

_MOST = 40
"""Columns of what is said of a mark."""
_BESIDE = 5.0
"""Seconds by which a command and the change it made may lie apart."""

_AWAY = 3
"""Columns between a round time and other words."""


def happened(marks: Sequence[Mark], frame: Frame, step: float) -> list[Mark]:
    """What happened to the scan and what was done from consoles, oldest first.

    What a command changed is not told beside the command. ``step``: seconds of a scan's steps.
    """
    done = [Mark(event.t, event.text) for event in frame.events if event.name == DONE]
    beside = max(_BESIDE, 2 * step)
    seen = [m for m in marks if all(abs(m.t - each.t) > beside for each in done)]
    return sorted((*seen, *done))


def name_marks(line: TimeAxis, marks: Sequence[tuple[int, Mark]], look: DisplayFormat) -> None:
    """Say at their columns what the marks are, the newest first."""
    for at, mark in reversed(marks):
        said = fit(look.text(mark.text), _MOST, ellipsis=look.glyphs.ellipsis).rstrip()
        line.name(at, f"{said} {look.clock(mark.t)}")


def name_times(
    line: TimeAxis, begin: float, end: float, first: int, width: int, look: DisplayFormat
) -> None:
    """Write round times where there is room; ``begin`` is at the column ``first``."""
    columns, ends = width - first, {look.when(begin, end), look.when(end, end)}
    for t in round_times(begin, end, columns, look.zone):
        if look.when(t, end) in ends:
            continue  # it would stand there twice
        said = look.when(t, end).removesuffix(" 00:00")
        at = first + int((t - begin) / (end - begin) * columns)
        line.put(at, said if look.clock(t) == "00:00" else look.clock(t), away=_AWAY)
