"""Horizontal bars."""

from __future__ import annotations

import math

from zconsole.ui.widgets.draw import Line, Span
from zconsole.ui.widgets.glyphs import Glyphs

_FULL = 0.9995
"""From here on a percentage is printed as 100.0."""


def bar(
    share: float | None, width: int, glyphs: Glyphs, role: str = "bar", *, thin: bool = False
) -> Line:
    """A bar of ``width`` cells filled to ``share`` (0…1, clamped); all track when unknown.

    A share above 0 always shows at least its smallest mark and one that does not print as
    100.0 % never looks full. A thin bar, for what matters less, is dim and rounded to whole cells.
    """
    if width <= 0:
        return ()
    if share is None or math.isnan(share):
        return (Span(glyphs.track * width, "track"),)
    full, partial = (glyphs.thin, "") if thin else (glyphs.full, glyphs.partial)
    steps = len(partial) + 1
    filled = round(max(0.0, min(1.0, share)) * width * steps)
    if share > 0 and not thin:
        filled = max(1, filled)
    if share < _FULL and not thin:
        filled = min(filled, width * steps - 1)
    whole, rest = divmod(filled, steps)
    done = full * whole + (partial[rest - 1] if rest else "")
    return (Span(done, "dim" if thin else role), Span(glyphs.track * (width - len(done)), "track"))
