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
"""Of a cell, in the picture's units; rows are drawn on their baseline."""
AREAS = {
    **{chr(0x2580 + eighths): (1.0, 0.0, eighths / 8) for eighths in range(1, 9)},
    **{chr(0x2590 - eighths): (eighths / 8, 0.0, 1.0) for eighths in range(1, 8)},
    "─": (1.0, 0.475, 0.05),
    "━": (1.0, 0.45, 0.1),
}
"""What blocks and rules fill of a cell: width from the left, begin above the foot, height."""
KINDS = re.compile(rf"(?P<areas>[{''.join(AREAS)}]+)|[^{''.join(AREAS)}]+")


@dataclass
class Pen:
    """Draws rows on a ground of that color, and collects the styles they need."""

    ground: str
    looks: dict[str, str] = field(default_factory=dict)
    """CSS, and the name of the class that has it."""

    def drawn(self, row: Row) -> str:
        """The elements of a row; none where it is blank."""
        return "".join((*self._grounds(row), *map(self._run, runs(row))))

    def css(self) -> str:
        """The classes of everything drawn so far."""
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
    """Text of one look, and the blanks inside it, from a column on."""

    column: int
    text: str
    look: str
    """CSS."""
    areas: bool
    """Whether it is blocks and rules, and nothing else."""


def runs(row: Row) -> list[Run]:
    """Everything in a row that is not blank, as few runs as there can be."""
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
    """How the text of a style looks."""
    extras = (
        (style.bold, ";font-weight:bold"),
        (style.italic, ";font-style:italic"),
        (style.underlined, ";text-decoration:underline"),
    )
    return f"fill:#{style.color}" + "".join(extra for wanted, extra in extras if wanted)


def areas(run: Run) -> str:
    """The path of blocks and rules; equal neighbours are one area."""
    path, column = "", run.column
    for character, alike in groupby(run.text):
        count = len(list(alike))
        if character in AREAS:
            width, above, height = AREAS[character]
            path += area(column, count - 1 + width, above, height)
        column += count
    return path


def area(column: int, cells: float, above: float = 0.0, height: float = 1.0) -> str:
    """A path around cells, or around a share of their height that begins above their foot."""
    top = HEIGHT * (1 - above - height) - BASELINE
    wide = f"{cells * WIDTH:g}"
    return f"M{column * WIDTH} {top:g}h{wide}v{HEIGHT * height:g}h-{wide}z"
