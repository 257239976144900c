"""Strips of cells, the darker the more: for what would look alike as sparklines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import dropwhile

from zconsole.ui.widgets.glyphs import Glyphs


def heat_strip(
    values: Sequence[float | None], width: int, steps: Sequence[float], glyphs: Glyphs
) -> str:
    """The last ``width`` values as cells, the darker the more of ``steps`` they reach.

    Nothing is drawn for 0 nor before the first sample; a missing sample in between is a gap mark.
    """
    tail = list(values[-width:]) if width > 0 else []
    cells = [_heat(value, steps, glyphs) for value in dropwhile(lambda v: v is None, tail)]
    return " " * (width - len(cells)) + "".join(cells)


def _heat(value: float | None, steps: Sequence[float], glyphs: Glyphs) -> str:
    if value is None or math.isnan(value):
        return glyphs.gap
    return glyphs.heat[1 + sum(value >= step for step in steps) if value > 0 else 0]
