"""Bugs of OpenZFS releases: the table, and the warnings for a release."""

from __future__ import annotations

import re
import tomllib

from tests.table import rows
from tests.unit.zfs.decode.typed import mistyped
from zconsole.pool.hazards import HAZARDS, TABLE, Hazard, hazards
from zconsole.pool.model import parse_version

LATEST = [(2, 2, 11), (2, 3, 9), (2, 4, 4)]
"""The newest release of each branch when the table was made."""


@rows("hazard", HAZARDS)
def test_a_row_is_typed_and_has_a_source_for_each_mend(hazard: Hazard) -> None:
    assert list(mistyped(hazard)) == []
    assert hazard.actions
    assert hazard.happens
    assert hazard.do
    assert hazard.sources
    assert all(re.fullmatch("[0-9a-f]{10}", commit) for commit in hazard.sources)
    released = {"", *hazard.sources.values()}
    assert all(word in ("", "master") or parse_version(word) for word in released)
    mends = {mended for *_, mended in hazard.affected}
    assert mends <= released
    assert "" not in mends or "master" in released


@rows("hazard", HAZARDS)
def test_ranges_are_in_order_and_end_before_the_mend(hazard: Hazard) -> None:
    ends = [version for first, last, _ in hazard.affected for version in (first, last)]
    assert ends == sorted(ends)
    assert len(set(ends)) == len(ends)
    for _, last, mended in hazard.affected:
        assert last < parse_version(mended) if mended else last in LATEST


def test_the_table_has_no_field_that_a_hazard_lacks() -> None:
    rows = tomllib.loads(TABLE.read_text("utf-8"))["hazards"]
    assert {name for row in rows for name in row} == set(Hazard._fields)


@rows(
    ("version", "mended"),
    [
        ((2, 0, 0), "2.3.7"),
        ((2, 1, 11), "2.3.7"),
        ((2, 2, 11), "2.3.7"),
        ((2, 3, 6), "2.3.7"),
        ((2, 4, 1), "2.4.2"),
        ((0, 8, 6), None),
        ((2, 2, 12), None),
        ((2, 3, 7), None),
        ((2, 4, 2), None),
        ((2, 5, 0), None),
        ((), None),
    ],
)
def test_a_release_is_told_its_own_mend(version: tuple[int, ...], mended: str | None) -> None:
    said = hazards("replace -s tank a b", version)
    assert [re.findall(r"fixed in (\S+)\)", words) for words in said] == (
        [[mended]] if mended else []
    )
    assert all(words.startswith(f"OpenZFS {'.'.join(map(str, version))}: ") for words in said)


def test_what_no_release_mends_is_said_so() -> None:
    (said,) = hazards("attach tank raidz1-0 b", (2, 4, 4), ["raidz1"])
    assert "(not fixed in any release yet)" in said


@rows(
    ("action", "kinds", "count"),
    [
        ("replace tank a b", ["mirror"], 0),
        ("replace tank a b", ["draid2"], 1),
        ("replace -s tank a b", ["mirror", "draid2"], 3),
        ("replacement", ["draid2"], 0),
        ("detach tank a", ["draid1"], 1),
        ("detach tank a", ["mirror"], 0),
        ("scrub replace", ["draid1"], 0),
    ],
)
def test_only_the_action_on_the_layout_concerned(action: str, kinds: list[str], count: int) -> None:
    assert len(hazards(action, (2, 3, 6), kinds)) == count
