"""SVG of rows of text: one element per color, as wide as its cells in every font.

Bars, sparklines and rules are drawn as areas, because letters leave gaps between each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from xml.sax.saxutils import escape

from tests.cast.screens import Row, Style

WIDTH, HEIGHT, BASELINE = 10, 20, 15
"""Size of a cell in the picture's units, and the baseline on which rows are drawn."""
AREAS = {
    **{chr(0x2580 + eighths): (1.0, 0.0, eighths / 8) for eighths in range(1, 9)},
    **{chr(0x2590 - eighths): (eighths / 8, 0.0, 1.0) for eighths in range(1, 8)},
    "─": (1.0, 0.475, 0.05),
    "━": (1.0, 0.45, 0.1),
}
"""The part of a cell that blocks and rules fill: width from the left, offset from the foot, height.
"""
KINDS = re.compile(rf"(?P<areas>[{''.join(AREAS)}]+)|[^{''.join(AREAS)}]+")


@dataclass
class Pen:
    """Draws rows on a background color, and collects the styles that they need."""

    ground: str
    looks: dict[str, str] = field(default_factory=dict)
    """Class names by CSS."""

    def drawn(self, row: Row) -> str:
        """Return the elements of a row; empty for a blank row."""
        return "".join((*self._grounds(row), *map(self._run, runs(row))))

    def css(self) -> str:
        """Return the CSS classes of everything drawn so far."""
        return "".join(f".{name}{{{look}}}" for look, name in self.looks.items())

    def _grounds(self, row: Row) -> Iterator[str]:
        for color, alike in groupby(row, lambda piece: piece.style.ground):
            if color != self.ground:
                pieces = list(alike)
                cells = sum(len(piece.text) for piece in pieces)
                yield f'<path fill="#{color}" d="{area(pieces[0].column, cells)}"/>'

    def _run(self, run: Run) -> str:
        name = self.looks.setdefault(run.look, f"l{len(self.looks)}")
        if run.areas:
            return f'<path class="{name}" d="{areas(run)}"/>'
        place = f'x="{run.column * WIDTH}" textLength="{len(run.text) * WIDTH}"'
        return f'<text class="{name}" {place}>{escape(run.text)}</text>'


@dataclass(frozen=True)
class Run:
    """Text of one style, with the blanks inside it, starting at a column."""

    column: int
    text: str
    look: str
    """The style as CSS."""
    areas: bool
    """Whether the text consists of blocks and rules only."""


def runs(row: Row) -> list[Run]:
    """Return everything in a row that is not blank, in as few runs as possible."""
    found: list[Run] = []
    for word in _words(row):
        if found and (found[-1].look, found[-1].areas) == (word.look, word.areas):
            before = found.pop()
            text = before.text.ljust(word.column - before.column) + word.text
            found.append(Run(before.column, text, word.look, word.areas))
        else:
            found.append(word)
    return found


def _words(row: Row) -> Iterator[Run]:
    for piece in row:
        if piece.text.strip():
            for found in KINDS.finditer(piece.text):
                column = piece.column + found.start()
                yield Run(column, found[0], css(piece.style), bool(found["areas"]))


def css(style: Style) -> str:
    """Return the CSS of a style."""
    extras = (
        (style.bold, ";font-weight:bold"),
        (style.italic, ";font-style:italic"),
        (style.underlined, ";text-decoration:underline"),
    )
    return f"fill:#{style.color}" + "".join(extra for wanted, extra in extras if wanted)


def areas(run: Run) -> str:
    """Return the path of blocks and rules; equal neighbors are joined into one area."""
    path, column = "", run.column
    for character, alike in groupby(run.text):
        count = len(list(alike))
        if character in AREAS:
            width, above, height = AREAS[character]
            path += area(column, count - 1 + width, above, height)
        column += count
    return path


def area(column: int, cells: float, above: float = 0.0, height: float = 1.0) -> str:
    """Return a path around cells, or around a share of their height from ``above`` the foot."""
    top = HEIGHT * (1 - above - height) - BASELINE
    wide = f"{cells * WIDTH:g}"
    return f"M{column * WIDTH} {top:g}h{wide}v{HEIGHT * height:g}h-{wide}z"
