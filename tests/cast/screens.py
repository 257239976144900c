"""The screens of a recording: styled text for each moment at which it changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import pyte
from pyte.screens import Char

from tests.cast.asciicast import OUTPUT, Cast


@dataclass(frozen=True)
class Style:
    """Style of a piece of text; colors are RRGGBB, and empty for a blank."""

    color: str
    ground: str
    bold: bool
    italic: bool
    underlined: bool


@dataclass(frozen=True)
class Piece:
    """Adjacent cells of one row with the same style, starting at a column."""

    column: int
    text: str
    style: Style


Row = tuple[Piece, ...]


@dataclass(frozen=True)
class Screen:
    """The rows shown from a moment on, in seconds."""

    at: float
    rows: tuple[Row, ...]


def screens(cast: Cast) -> list[Screen]:
    """Return the screens of a recording, each different from the one before it."""
    found: list[Screen] = []
    for screen in _after_each_moment(cast):
        if found and found[-1].at == screen.at:
            found.pop()
        if not found or found[-1].rows != screen.rows:
            found.append(screen)
    return found


def _after_each_moment(cast: Cast) -> Iterator[Screen]:
    terminal = pyte.Screen(cast.columns, cast.rows)
    stream = pyte.Stream(terminal)
    for event in cast.events:
        if event.kind == OUTPUT:
            stream.feed(event.text)
            yield Screen(event.at, tuple(_row(terminal, line) for line in range(cast.rows)))


def _row(terminal: pyte.Screen, line: int) -> Row:
    cells = [terminal.buffer[line][column] for column in range(terminal.columns)]
    pieces, column = [], 0
    for style, alike in groupby(cells, _style):
        data = [cell.data for cell in alike]
        pieces.append(Piece(column, "".join(data), style))
        column += len(data)
    return tuple(pieces)


def _style(cell: Char) -> Style:
    """Return the style of a cell; only the background of a blank counts."""
    color, ground = (cell.bg, cell.fg) if cell.reverse else (cell.fg, cell.bg)
    if not cell.data.strip() and not cell.underscore:
        return Style("", ground, False, False, False)
    return Style(color, ground, cell.bold, cell.italics, cell.underscore)
