"""Entries of zpool's error list that do not name a file."""

from __future__ import annotations

from tests.table import rows
from zconsole.pool.health import destroyed_ids, explained, notes

GONE = {"0x21b": "tank/old@monday"}


@rows(
    ("entry", "said"),
    [
        ("<0x21b>:<0x8f3>", "was in tank/old@monday, which is destroyed: leaves the list after"),
        ("<0x99>:<0x8f3>", "a destroyed snapshot or dataset: leaves the list after two scrubs"),
        ("<metadata>:<0x3d>", "the pool's own metadata, no file: scrub twice"),
        ("tank/vm disk:<0x1>", "a volume's data, or a filesystem's root metadata: restore tank/vm"),
        ("tank/a@b:<0x0>", "its list of objects: restore tank/a@b"),
        ("tank/a:<0x1c4>", "a deleted file (inode 452): leaves the list after two scrubs"),
    ],
)
def test_an_entry_of_numbers_is_explained(entry, said):
    assert explained(entry, GONE).startswith(said)


@rows(
    "entry",
    [
        "/tank/a",
        "tank/a@b:/c <0x1>:x",
        "/tank/<0x1>",
        "tank:/<0x12>/y",
        "",
        "<0x1>",
        f"tank/a:<0x{'9' * 5000}>",
    ],
)
def test_an_entry_with_a_path_needs_no_explanation(entry):
    assert explained(entry, GONE) == ""
    assert notes([entry], GONE) == {}


def test_only_the_ids_of_datasets_that_are_no_more_are_looked_for():
    entries = ["/tank/a", "<0x21b>:<0x1>", "tank/b:<0x2>", "<metadata>:<0x3>"]
    assert list(destroyed_ids(entries)) == ["0x21b"]
    assert list(destroyed_ids(None)) == []
