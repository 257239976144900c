"""Strips of cells, the darker the more: for what would look alike as sparklines."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole.ui.widgets.glyphs import Glyphs
from zconsole.ui.widgets.spark import cells_of


def heat_strip(
    values: Sequence[float | None], width: int, steps: Sequence[float], glyphs: Glyphs
) -> str:
    """The last ``width`` values as cells, the darker the more of ``steps`` they reach.

    Nothing is drawn for 0 nor before the first sample; a missing sample in between is a gap mark.
    """

    def _cell(value: float) -> str:
        return glyphs.heat[1 + sum(value >= step for step in steps) if value > 0 else 0]

    return cells_of(values, width, _cell, glyphs.gap)
