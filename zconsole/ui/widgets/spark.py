"""Sparklines on a common scale that starts at zero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from zconsole.ui.widgets.glyphs import Glyphs


def scale(values: Iterable[float | None]) -> float:
    """The top of a scale for ``values``: the next of 1, 2, 4, 8 … in the units of their sizes.

    Powers of two keep the label short (``256M``) and the scale still while rates wobble.
    """
    peak = max((v for v in values if v is not None and math.isfinite(v)), default=0.0)
    if peak < 1:
        return 1.0
    return float(2.0 ** math.ceil(math.log2(peak)))


def sparkline(values: Sequence[float | None], width: int, top: float, glyphs: Glyphs) -> str:
    """The last ``width`` values against 0…``top``, newest at the right, always ``width`` cells.

    Nothing is drawn for 0 nor before the first sample; a missing sample in between is a gap mark.
    """
    if width <= 0:
        return ""
    tail = values[-width:]
    cells: list[str] = []
    begun = False
    for value in tail:
        begun = begun or value is not None
        cells.append(_cell(value, top, glyphs) if begun else " ")
    return " " * (width - len(cells)) + "".join(cells)


def _cell(value: float | None, top: float, glyphs: Glyphs) -> str:
    if value is None or math.isnan(value):
        return glyphs.gap
    levels = len(glyphs.spark) - 1
    level = math.ceil(min(1.0, value / top) * levels) if value > 0 else 0
    return glyphs.spark[level]
