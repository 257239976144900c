"""Figures drawn in text, and the characters they are made of: bars, and values over time.

Values over time are on a scale from zero, newest at the right: a sparkline, a strip of cells that
get darker, or a graph of several rows. In braille two values share a cell of a graph and each row
has four levels; in blocks, and in plain ASCII, a cell holds one value and a row has as many levels
as a sparkline.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from zconsole.ui.widgets.draw import Line, Span


class Glyphs(NamedTuple):
    """One set of characters, all a single cell wide."""

    spark: str
    """Levels from nothing to full, lowest first."""
    heat: str
    """Levels of a cell of a heat strip, from none to the most."""
    gap: str
    """A missing sample between two others."""
    full: str
    partial: str
    """Parts of a cell in eighths, smallest first; empty if the set has none."""
    thin: str
    """Filled cell of a less important bar."""
    track: str
    ellipsis: str
    dot: str
    """Separator of two facts on one line."""
    folded: str
    sorted: str
    pointer: str
    """Marks the cursor in a map and the current step of a list."""
    mark: str
    """Marks a moment below a timeline."""
    dots: str
    """Braille cells by the levels (0 to 4) of their left and right column; empty if none."""
    rising: str
    falling: str
    steady: str
    """Trends of a rate."""
    above: str
    below: str
    """Scroll marks in a title: there are lines out of sight."""
    rule: str
    """Rule between two panes."""
    box: str
    """Corners of a frame, clockwise from the top left, then its side."""
    axis: str
    """Top, middle and foot of a scale."""

    @property
    def is_ascii(self) -> bool:
        """Whether other text has to be converted to ASCII, too."""
        return self.full.isascii()

    @property
    def arrow(self) -> str:
        """Arrow between the state before and after."""
        return "->" if self.is_ascii else "→"


UNICODE = Glyphs(
    spark=" ▁▂▃▄▅▆▇█",
    heat=" ░▒▓█",
    gap="·",
    full="█",
    partial="▏▎▍▌▋▊▉",
    thin="━",
    track="·",
    ellipsis="…",
    dot="·",
    folded="▸",
    sorted="▾",
    pointer="›",
    mark="▴",
    dots=" ⢀⢠⢰⢸⡀⣀⣠⣰⣸⡄⣄⣤⣴⣼⡆⣆⣦⣶⣾⡇⣇⣧⣷⣿",
    rising="▲",
    falling="▼",
    steady="=",
    above="↑",
    below="↓",
    rule="─",
    box="╭╮╯╰│",
    axis="┤│┴",
)

ASCII = Glyphs(
    spark=" _.-=+*#@",
    heat=" .:*#",
    gap="?",
    full="#",
    partial="",
    thin="=",
    track=".",
    ellipsis="*",
    dot="|",
    folded="+",
    sorted="v",
    pointer=">",
    mark="^",
    dots="",
    rising="^",
    falling="v",
    steady="=",
    above="^",
    below="v",
    rule="-",
    box="++++|",
    axis="||+",
)


def scale(values: Iterable[float | None]) -> float:
    """Return the top of a scale for ``values``: the next power of two, at least 1.

    Powers of two keep the label short (``256M``) and the scale stable while rates fluctuate.
    """
    peak = max((v for v in values if v is not None and math.isfinite(v)), default=0.0)
    if peak < 1:
        return 1.0
    return float(2.0 ** math.ceil(math.log2(peak)))


def _levels(values: Sequence[float | None], count: int, top: float, most: int) -> list[int]:
    """Return how many of ``most`` levels each of the last ``count`` values fills against 0…``top``.

    A value above 0 fills at least one. -1 for a missing value; 0 in places before the first value.
    """
    shown = values[-count:] if count > 0 else ()
    first = next((n for n, value in enumerate(shown) if value is not None), len(shown))
    known = [
        -1
        if value is None or math.isnan(value)
        else math.ceil(min(1.0, value / top) * most)
        if value > 0 and top > 0
        else 0
        for value in shown[first:]
    ]
    return [0] * (count - len(known)) + known


def sparkline(
    values: Sequence[float | None], width: int, top: float, glyphs: Glyphs, marks: str = ""
) -> str:
    """Draw the last ``width`` values against 0…``top`` in ``width`` cells, newest at the right.

    Nothing is drawn for 0 nor before the first sample; a missing sample in between is a gap mark.
    ``marks`` has a character for each level, by default those of a sparkline.
    """
    marks = marks or glyphs.spark
    levels = _levels(values, width, top, len(marks) - 1)
    return "".join([glyphs.gap if level < 0 else marks[level] for level in levels])


def heat_strip(
    values: Sequence[float | None], width: int, steps: Sequence[float], glyphs: Glyphs
) -> str:
    """Draw values like ``sparkline``, as cells that are darker for each of ``steps`` they reach.

    For values that would look alike as sparklines.
    """
    shown = values[-width:] if width > 0 else ()
    reached = [
        value if value is None or not value > 0 else 1 + sum([value >= step for step in steps])
        for value in shown
    ]
    return sparkline(reached, width, 1 + len(steps), glyphs, glyphs.heat)


_FULL = 0.9995
"""Shares from here on are printed as 100.0 %."""


def bar(
    share: float | None, width: int, glyphs: Glyphs, role: str = "bar", *, thin: bool = False
) -> Line:
    """Draw a bar of ``width`` cells filled to ``share`` (0…1, clamped); all track if unknown.

    A share above 0 always shows at least its smallest mark, and one that does not print as 100.0 %
    never looks full. A thin bar, for less important values, is dim and rounded to whole cells.
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


_DOTS = 4
"""Levels of a braille cell."""


def graph_values(width: int, rows: int, glyphs: Glyphs) -> int:
    """Return the number of values in a graph of this size."""
    return width * (2 if rows > 1 and glyphs.dots else 1)


def graph_lines(
    values: Sequence[float | None], width: int, rows: int, top: float, glyphs: Glyphs
) -> list[str]:
    """Draw the last values against 0…``top`` on ``rows`` lines of ``width`` cells, top first.

    Values above 0 show at least the smallest mark; a missing value is a gap mark in the bottom
    line, and nothing is drawn before the first value.
    """
    if rows < 1 or width < 1:
        return []
    if rows == 1:
        return [sparkline(values, width, top, glyphs)]
    per_row = _DOTS if glyphs.dots else len(glyphs.spark) - 1
    levels = _levels(values, graph_values(width, rows, glyphs), top, rows * per_row)
    draw = _dotted if glyphs.dots else _blocks
    # Starts with level -1, so that ``level + 1`` is the index of a level.
    every = range(-1, rows * per_row + 1)
    return [
        draw(levels, [max(0, min(per_row, n - row * per_row)) for n in every], row > 0, glyphs)
        for row in reversed(range(rows))
    ]


def _dotted(levels: Sequence[int], filled: Sequence[int], is_upper: bool, glyphs: Glyphs) -> str:
    """Draw one line in braille.

    ``filled`` has the levels filled in this line by each level of the graph, starting with level
    -1.
    """
    dots, gap = glyphs.dots, " " if is_upper else glyphs.gap
    step = _DOTS + 1
    return "".join(
        dots[filled[left + 1] * step + filled[right + 1]] if left >= 0 or right >= 0 else gap
        for left, right in zip(levels[::2], levels[1::2], strict=True)
    )


def _blocks(levels: Sequence[int], filled: Sequence[int], is_upper: bool, glyphs: Glyphs) -> str:
    """Draw one line in blocks, or in plain characters; ``filled`` is as for ``_dotted``."""
    gap = " " if is_upper else glyphs.gap
    return "".join(gap if level < 0 else glyphs.spark[filled[level + 1]] for level in levels)
