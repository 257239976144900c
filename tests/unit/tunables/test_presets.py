from __future__ import annotations

import pytest

from tests.table import rows
from zconsole.tunables.catalog import BY_NAME, LIMITS, NAMES, preset

U64 = (1 << 64) - 1


@pytest.mark.parametrize("name", NAMES)
def test_every_value_of_a_preset_can_be_set(kernel, name):
    chosen = preset(name, kernel.parameters)
    kernel.console().set(chosen.values, 1.0)
    for key, value in chosen.values.items():
        assert kernel.read(key) == value


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_touches_nothing_else(kernel, limit):
    assert set(preset("faster-resilver", kernel.parameters, limit).values) <= set(LIMITS[limit])


def test_new_disk_writes_raise_only_the_write_queue(kernel):
    chosen = preset("faster-resilver", kernel.parameters, "new-disk-writes")
    assert chosen.values == {"zfs_vdev_async_write_min_active": 8}
    assert chosen.warnings == ()


def test_stretching_txgs_is_warned_of(kernel):
    chosen = preset("faster-resilver", kernel.parameters, "txg-time")
    assert "every pool" in chosen.warnings[0]


def test_faster_never_slows(kernel):
    kernel.write("zfs_resilver_min_time_ms", 9000)
    assert "zfs_resilver_min_time_ms" not in preset("faster-resilver", kernel.parameters).values


def test_default_is_this_versions(kernel):
    kernel.write("zfs_resilver_min_time_ms", 9000)
    assert preset("default", kernel.parameters).values["zfs_resilver_min_time_ms"] == 3000
    (kernel.module / "version").write_text("2.4.4-1\n")
    assert preset("default", kernel.parameters).values["zfs_resilver_min_time_ms"] == 1500


def test_every_preset_value_and_default_is_in_range():
    for values in LIMITS.values():
        for name, value in values.items():
            assert BY_NAME[name].problem(value) is None
    for tunable in BY_NAME.values():
        for _, value in tunable.defaults:
            if tunable.name != "zfs_arc_max" and value is not None:
                assert tunable.problem(value) is None, tunable.name
        assert 0 <= tunable.low < tunable.high <= U64


@rows(
    ("name", "version", "default"),
    [
        ("zfs_scan_vdev_limit", (2, 1, 10), 4 << 20),
        ("zfs_scan_vdev_limit", (2, 1, 11), 16 << 20),
        ("zfs_resilver_min_time_ms", (2, 4, 0), 3000),
        ("zfs_resilver_min_time_ms", (2, 4, 1), 1500),
        ("zfs_vdev_scrub_max_active", (0, 8, 6), 2),
        ("zfs_vdev_scrub_max_active", (2, 1, 11), 3),
        ("zfs_resilver_defer_percent", (2, 2, 9), None),
        ("zfs_bclone_enabled", (2, 2, 4), 0),
        ("zfs_scan_vdev_limit", (), None),
    ],
)
def test_defaults_by_version(name, version, default):
    assert BY_NAME[name].default(version) == default
