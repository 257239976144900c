"""How the slots of an enclosure lie, as the configuration says it: nothing else tells that."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from zconsole.pool.chassis import Enclosure

LARGEST = 100
"""Columns or rows at most: several times those of any chassis."""
BY_ROW, BY_COLUMN = "by-row", "by-column"
FROM_TOP, FROM_BOTTOM = "from-top", "from-bottom"
EXAMPLE = '"SAS3x40: 4x6 by-column from-bottom"'
_EITHER = ({BY_ROW, BY_COLUMN}, {FROM_TOP, FROM_BOTTOM})
_FORM = re.compile(
    r"(?P<name>.*\S) *: *(?P<columns>\d{1,3})x(?P<rows>\d{1,3})(?P<words>( +[a-z-]+)*)"
)


class ChassisLayout(NamedTuple):
    """Columns and rows of an enclosure's slots, and where the first slot is."""

    name: str
    """The id of the enclosures meant, or a part of their vendor and model."""
    columns: int
    rows: int
    by_column: bool = False
    """Whether the second slot is above or below the first one, and not beside it."""
    from_bottom: bool = False
    """Whether the first slot is in the lowest row."""

    def grid(self, slots: int) -> tuple[tuple[int | None, ...], ...]:
        """The indices of the slots row by row, None where a place has no slot.

        What is more than fits follows as another block below, as the next drawer.
        """
        size = self.columns * self.rows
        starts = range(0, slots, size)
        return tuple(row for start in starts for row in self._block(start, slots))

    def _block(self, start: int, slots: int) -> Iterable[tuple[int | None, ...]]:
        rows = range(self.rows)
        for row in reversed(rows) if self.from_bottom else rows:
            numbers = (start + self._number(row, column) for column in range(self.columns))
            yield tuple(number if number < slots else None for number in numbers)

    def _number(self, row: int, column: int) -> int:
        return column * self.rows + row if self.by_column else row * self.columns + column


def parse_layout(text: str) -> ChassisLayout:
    """A layout as it is written: ``SAS3x40: 4x6 by-column from-bottom``. Raises ValueError."""
    found = _FORM.fullmatch(text.strip())
    words = found["words"].split() if found else []
    # Of contradictory words none can be meant: a wrong map leads to the wrong disk.
    known = {*words} <= set[str]().union(*_EITHER) and not any(two <= {*words} for two in _EITHER)
    columns, rows = (int(found["columns"]), int(found["rows"])) if found else (0, 0)
    if found is None or not known or not 0 < columns <= LARGEST or not 0 < rows <= LARGEST:
        raise ValueError(f"must be layouts such as {EXAMPLE}, not {text!r}")
    return ChassisLayout(found["name"], columns, rows, BY_COLUMN in words, FROM_BOTTOM in words)


def layout_of(layouts: Sequence[str], enclosure: Enclosure) -> ChassisLayout | None:
    """The layout of an enclosure: by its id, else by vendor and model; None where none is said."""
    known = [parse_layout(text) for text in layouts]
    by_id = (each for each in known if enclosure.key and each.name == enclosure.key)
    by_model = (each for each in known if each.name.lower() in enclosure.name.lower())
    return next(by_id, None) or next(by_model, None)
