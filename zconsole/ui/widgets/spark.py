"""Sparklines on a common scale that starts at zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import dropwhile

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
    levels = len(glyphs.spark) - 1

    def _cell(value: float) -> str:
        return glyphs.spark[math.ceil(min(1.0, value / top) * levels) if value > 0 else 0]

    return cells_of(values, width, _cell, glyphs.gap)


def cells_of(
    values: Sequence[float | None], width: int, cell: Callable[[float], str], gap: str
) -> str:
    """The last ``width`` values, each as its ``cell``; ``gap`` where one is missing.

    Nothing is drawn before the first.
    """
    tail = dropwhile(lambda value: value is None, values[-width:] if width > 0 else ())
    drawn = "".join(gap if v is None or math.isnan(v) else cell(v) for v in tail)
    return drawn.rjust(width)
