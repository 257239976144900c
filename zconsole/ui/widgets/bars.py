"""Horizontal bars."""

from __future__ import annotations

import math

from zconsole.ui.widgets.draw import Line, Span
from zconsole.ui.widgets.glyphs import Glyphs

_FULL = 0.9995
"""From here on a percentage is printed as 100.0."""


def bar(share: float | None, width: int, glyphs: Glyphs, role: str = "bar") -> Line:
    """A bar of ``width`` cells filled to ``share`` (0…1, clamped); all track when unknown.

    A share above 0 always shows at least its smallest mark and one that does not print as
    100.0 % never looks full.
    """
    if width <= 0:
        return ()
    if share is None or math.isnan(share):
        return (Span(glyphs.track * width, "track"),)
    steps = len(glyphs.partial) + 1
    eighths = round(max(0.0, min(1.0, share)) * width * steps)
    if share > 0:
        eighths = max(1, eighths)
    if share < _FULL:
        eighths = min(eighths, width * steps - 1)
    whole, rest = divmod(eighths, steps)
    done = glyphs.full * whole + (glyphs.partial[rest - 1] if rest else "")
    return (Span(done, role), Span(glyphs.track * (width - len(done)), "track"))


def thin_bar(share: float | None, width: int, glyphs: Glyphs) -> Line:
    """A bar in whole cells of a thin line, for what matters less than the bar above it."""
    if share is None or math.isnan(share) or width <= 0:
        return (Span(glyphs.track * max(0, width), "track"),)
    done = round(max(0.0, min(1.0, share)) * width)
    return (Span(glyphs.thin * done, "dim"), Span(glyphs.track * (width - done), "track"))
