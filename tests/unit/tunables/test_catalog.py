"""The table of tunables: the code can use every value."""

from __future__ import annotations

import json

from tests.table import rows
from tests.unit.zfs.decode.typed import mistyped
from zconsole.tunables.catalog import BY_NAME, LIMITS, TABLE, TUNABLES, Tunable


@rows("tunable", TUNABLES)
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


@rows(
    ("name", "text", "value"),
    [
        ("scan_vdev_limit", "16777216", 16 << 20),
        ("scan_vdev_limit", "16M", 16 << 20),
        ("scan_vdev_limit", "16m", 16 << 20),
        ("scan_vdev_limit", "16MiB", 16 << 20),
        ("scan_vdev_limit", "1.5G", 3 << 29),
        ("scan_vdev_limit", "18446744073709551615", 2**64 - 1),
        ("scan_vdev_limit", "many", None),
        ("scan_vdev_limit", "-1", None),
        ("scan_vdev_limit", "", None),
        ("scan_vdev_limit", "9" * 5000, None),
        ("txg_timeout", "16M", None),
        ("txg_timeout", "16", 16),
        ("txg_timeout", "1/10", None),
        ("scan_mem_lim_fact", "1/10", 10),
        ("scan_mem_lim_fact", "10", 10),
        ("scan_mem_lim_fact", "2/10", None),
        ("scan_mem_lim_fact", "1/", None),
    ],
)
def test_bytes_are_understood_with_a_suffix_or_in_full_and_a_share_as_it_is_shown(
    name, text, value
):
    assert BY_NAME[f"zfs_{name}"].number(text) == value


def test_bytes_that_a_suffix_rounds_are_shown_in_full_too():
    assert BY_NAME["zfs_txg_timeout"].exact(4096) == "4096"
    assert BY_NAME["zfs_txg_timeout"].exact(None) == "-"
    limit = BY_NAME["zfs_scan_vdev_limit"]
    assert limit.exact(16 << 20) == "16M"
    assert limit.exact(16_000_000) == "15.3M (16000000 bytes)"
    assert limit.rounded(16_000_000) == "15.3M"
    problem = limit.problem(1)
    assert problem is not None
    assert "64K to 1G bytes" in problem
