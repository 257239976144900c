"""Descriptions of disks and slots."""

from __future__ import annotations

import pytest

from tests.table import rows
from zconsole.pool.chassis import Enclosure, LeafDisk, Slot, layout_of, parse_layout


@rows(
    ("disk", "besides", "words"),
    [
        (LeafDisk(bay="Slot 07", serial="Z1"), "", "Slot 07, serial Z1"),
        (LeafDisk(bay="A12", serial="Z1"), "", "bay A12, serial Z1"),
        (LeafDisk(bay="bay12"), "", "bay12"),
        (LeafDisk(serial="Z1"), "", "serial Z1"),
        (LeafDisk(bay="A12", serial="Z1"), "ata-LAB_Z1", "bay A12"),
        (LeafDisk(bay="A12", serial="Z1"), "A12", "serial Z1"),
        (LeafDisk(model="LAB"), "", ""),
    ],
)
def test_a_disk_is_named_by_bay_and_serial_number(disk, besides, words):
    assert disk.words(besides) == words


def test_a_slot_that_is_only_a_number_is_called_a_slot():
    assert Slot("007", 7).label == "slot 7"
    assert Slot("12").label == "slot 12"
    assert Slot("Slot 07", 7).label == "Slot 07"


@rows(
    ("words", "rows"),
    [
        ("", ((0, 1, 2), (3, 4, None))),
        ("by-row from-top", ((0, 1, 2), (3, 4, None))),
        ("by-column", ((0, 2, 4), (1, 3, None))),
        ("from-bottom", ((3, 4, None), (0, 1, 2))),
        ("by-column from-bottom", ((1, 3, None), (0, 2, 4))),
    ],
)
def test_slots_lie_as_the_words_say(words: str, rows: tuple[tuple[int | None, ...], ...]):
    assert parse_layout(f"LAB 5: 3x2 {words}".strip()).grid(5) == rows


def test_blanks_before_the_colon_belong_to_no_name():
    assert parse_layout("LAB 5 : 4x6").name == "LAB 5"


def test_what_is_more_than_fits_is_another_block():
    assert parse_layout("LAB: 2x1").grid(3) == ((0, 1), (2, None))


NEITHER = ["LAB: 4x6 by-row by-column", "LAB: 4x6 from-top from-bottom", " : 4x6"]


@rows("text", ["", "LAB", "LAB: 4", "LAB: 0x6", "LAB: 4x101", "LAB: 4x6 up", *NEITHER])
def test_what_is_no_layout_is_refused(text: str):
    with pytest.raises(ValueError, match="must be layouts such as"):
        parse_layout(text)


def enclosure(slots: int, key: str = "0x5000ccab0512ab00", name: str = "SAS3x40") -> Enclosure:
    return Enclosure(key, name, tuple(Slot(f"Slot {n:02}", n) for n in range(slots)))


@rows(
    ("layout", "slots", "columns", "rows"),
    [
        ("SAS3x40: 4x6 by-column", 24, 4, 6),
        ("0x5000ccab0512ab00: 12x5", 60, 12, 5),
        ("SAS3x40: 12x1", 12, 12, 1),
        ("sas3X40: 4x6", 25, 4, 12),
    ],
)
def test_every_slot_of_a_chassis_has_one_place(layout: str, slots: int, columns: int, rows: int):
    known = layout_of([layout, "*: 1x1"], enclosure(slots))
    assert known is not None
    grid = known.grid(slots)
    assert (len(grid), {len(row) for row in grid}) == (rows, {columns})
    assert sorted(n for row in grid for n in row if n is not None) == list(range(slots))


def test_an_id_goes_before_a_model_and_other_enclosures_have_none():
    found = enclosure(24)
    known = layout_of(["SAS3x40: 4x6", f"{found.key}: 6x4"], found)
    assert known is not None
    assert (known.columns, known.rows) == (6, 4)
    assert layout_of(["H4060-J: 12x5", "0x5001: 4x6"], found) is None
