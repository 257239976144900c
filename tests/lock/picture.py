"""A screen as text, with the theme roles of its styles."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import groupby
from typing import NamedTuple

import pyte
from pyte.screens import Char

from tests.lock.scripts import THEME

_PLAIN, _PAGE = "foreground", "background"


def _roles() -> Mapping[str, str]:
    """Return the roles by color in the lock's own theme, and two mixed from these colors."""
    colors = tomllib.loads(THEME.read_text())["colors"]
    found = {color.removeprefix("#"): role for role, color in colors.items()}
    return {**found, "00001c": "rest", "332000": "tint"}


ROLES = _roles()


class Row(NamedTuple):
    """A row of the screen: its text, and the runs of cells with a style."""

    text: str
    roles: str


def picture(screen: pyte.Screen) -> list[Row]:
    """Return the rows of a screen."""
    lines = (screen.buffer[y] for y in range(screen.lines))
    return [_row([line[x] for x in range(screen.columns)]) for line in lines]


def _row(cells: list[Char]) -> Row:
    text = "".join(cell.data for cell in cells).rstrip()
    runs = [*_runs(map(_ground, cells), "on "), *_runs(_filled(map(_front, cells)))]
    return Row(text, ", ".join(runs))


def _runs(names: Iterable[str], before: str = "") -> Iterable[str]:
    """Yield the runs of equal names, with the first and last cell of each."""
    at = 0
    for name, group in groupby(names):
        length = len(list(group))
        if name:
            yield f"{at}-{at + length - 1} {before}{name}" if length > 1 else f"{at} {before}{name}"
        at += length


def _filled(fronts: Iterable[str | None]) -> list[str]:
    """Join runs of one name across blanks, which have none."""
    found: list[str] = []
    blanks = 0
    for front in fronts:
        if front is None:
            blanks += 1
            continue
        found += [front if found and found[-1] == front else ""] * blanks + [front]
        blanks = 0
    return found


@cache
def _ground(cell: Char) -> str:
    name = ROLES.get(cell.bg, cell.bg)
    return "" if name in (_PAGE, "default") else name.removesuffix("-background")


@cache
def _front(cell: Char) -> str | None:
    """Return the role of a cell's color and its attributes; None if none is visible."""
    shown = {"bold": cell.bold, "italic": cell.italics, "dim": cell.blink}
    always = {"underline": cell.underscore, "reverse": cell.reverse, "struck": cell.strikethrough}
    if cell.data in ("", " ") and not any(always.values()):
        return None
    name = ROLES.get(cell.fg, cell.fg)
    attributes = [word for word, is_on in {**shown, **always}.items() if is_on]
    return " ".join(["" if name in (_PLAIN, "default") else name, *attributes]).strip()
