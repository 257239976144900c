"""The table of tunables: every value is one that the code can use."""

from __future__ import annotations

import json

import pytest

from tests.unit.zfs.decode.typed import mistyped
from zconsole.tunables.catalog import BY_NAME, TABLE, TUNABLES, Tunable
from zconsole.tunables.presets import LIMITS


@pytest.mark.parametrize("tunable", TUNABLES, ids=lambda tunable: tunable.name)
def test_a_row_is_typed_and_its_defaults_are_in_order(tunable):
    assert list(mistyped(tunable)) == []
    assert 0 <= tunable.low < tunable.high
    versions = [version for version, _ in tunable.defaults]
    assert versions == sorted(versions)
    assert all(version for version in versions)
    assert tunable.affects in ("resilver", "scrub", "rebuild", "scans", "writes", "everything")


def test_bytes_are_read_with_their_suffix():
    limit = BY_NAME["zfs_scan_vdev_limit"]
    assert (limit.low, limit.high) == (1 << 16, 1 << 30)
    assert limit.defaults == (((0, 8), 4 << 20), ((2, 1, 11), 16 << 20))


def test_the_table_has_no_field_that_a_tunable_lacks():
    known = set(Tunable._fields) - {"low", "high"} | {"range"}
    table = json.loads(TABLE.read_text())
    rows, old = table["tunables"], table["historical"]
    limits = {*LIMITS, "gentle"}
    assert {name for row in rows.values() for name in row.get("presets", ())} == limits
    assert {name for row in rows.values() for name in row} <= known
    assert {name for row in old.values() for name in row["now"]} <= BY_NAME.keys()
