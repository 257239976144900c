"""Graphs of several rows: values over time on a scale from zero, the newest at the right.

In braille two values share a cell and each row has four levels; in blocks, and in plain ASCII, a
cell holds one value and a row has as many levels as a sparkline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from zconsole.ui.widgets.glyphs import Glyphs
from zconsole.ui.widgets.spark import sparkline

_DOTS = 4
"""Levels of a braille cell."""


def graph_values(width: int, rows: int, glyphs: Glyphs) -> int:
    """How many values a graph of this size shows."""
    return width * (2 if rows > 1 and glyphs.dots else 1)


def graph_lines(
    values: Sequence[float | None], width: int, rows: int, top: float, glyphs: Glyphs
) -> list[str]:
    """The last values against 0…``top`` on ``rows`` lines of ``width`` cells, the top line first.

    Whatever is above 0 shows at least its smallest mark; a missing value is a gap mark in the
    bottom line, and nothing before the first value.
    """
    if rows < 1 or width < 1:
        return []
    if rows == 1:
        return [sparkline(values, width, top, glyphs)]
    shown = list(values[-graph_values(width, rows, glyphs) :])
    per_row = _DOTS if glyphs.dots else len(glyphs.spark) - 1
    levels = [_level(value, top, rows * per_row) for value in _begun(shown)]
    levels = [0] * (graph_values(width, rows, glyphs) - len(levels)) + levels
    draw = _dotted if glyphs.dots else _blocks
    every = range(-1, rows * per_row + 1)
    return [
        draw(levels, [max(0, min(per_row, n - row * per_row)) for n in every], row > 0, glyphs)
        for row in reversed(range(rows))
    ]


def _begun(values: Sequence[float | None]) -> list[float | None]:
    """The values with nothing in place of gaps before the first one."""
    first = next((n for n, v in enumerate(values) if v is not None), len(values))
    return [*[0.0] * first, *values[first:]]


def _level(value: float | None, top: float, levels: int) -> int:
    """How many levels a value fills; -1 for none."""
    if value is None or math.isnan(value):
        return -1
    return math.ceil(min(1.0, value / top) * levels) if value > 0 and top > 0 else 0


def _dotted(levels: Sequence[int], filled: Sequence[int], is_upper: bool, glyphs: Glyphs) -> str:
    """One line in braille; ``filled`` has how much of it each level fills, that of -1 first."""
    dots, gap = glyphs.dots, " " if is_upper else glyphs.gap
    step = _DOTS + 1
    return "".join(
        dots[filled[left + 1] * step + filled[right + 1]] if left >= 0 or right >= 0 else gap
        for left, right in zip(levels[::2], levels[1::2], strict=True)
    )


def _blocks(levels: Sequence[int], filled: Sequence[int], is_upper: bool, glyphs: Glyphs) -> str:
    """One line in blocks, or in plain characters."""
    gap = " " if is_upper else glyphs.gap
    return "".join(gap if level < 0 else glyphs.spark[filled[level + 1]] for level in levels)
