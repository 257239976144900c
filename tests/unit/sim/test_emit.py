"""The raw form: OpenZFS's arrays, with the lengths of the simulated version."""

from __future__ import annotations

import pytest

from tests.table import rows
from tests.worlds import world_of
from zconsole.sim.scenarios import names


def nodes(node):
    yield node
    for key in ("children", "spares", "l2cache"):
        for child in node.get(key, ()):
            yield from nodes(child)


def tree(name):
    return world_of(name).raws()[0]["libzfs"]["vdev_tree"]


@pytest.mark.slow
@rows("name", [n for n in names() if n != "thousand"])
def test_arrays_have_the_version_s_lengths(name):
    old = name in ("new-disk", "scrub-delay")
    root = tree(name)
    assert {len(node["vdev_stats"]) for node in nodes(root)} == {27 if old else 48}
    if "scan_stats" in root:
        assert len(root["scan_stats"]) == (13 if old else 22)
    for node in nodes(root):
        assert all(type(value) is int for value in node["vdev_stats"])
        for key, values in node.get("vdev_stats_ex", {}).items():
            assert not key.endswith("_lat_histo") or len(values) == 37


def test_interior_vdevs_report_the_io_below_them():
    root = tree("resilver")
    for node in nodes(root):
        below = node.get("children", ())
        for index in (9, 10, 15, 16):
            if below:
                assert node["vdev_stats"][index] == sum(c["vdev_stats"][index] for c in below)


def test_capacity_is_the_sum_of_data_vdevs_without_logs():
    root = tree("healthy")
    data = [child for child in root["children"] if not child["is_log"]]
    for index in (3, 4):
        assert root["vdev_stats"][index] == pytest.approx(
            sum(child["vdev_stats"][index] for child in data), abs=len(data)
        )


def test_every_class_is_there():
    root = tree("healthy")
    assert [child.get("alloc_bias") for child in root["children"]] == [
        None,
        None,
        "special",
        "dedup",
        "log",
    ]
    assert [len(root["spares"]), len(root["l2cache"])] == [2, 1]


def test_a_failing_vdev_degrades_what_is_above_it():
    root = tree("resilver")
    raidz = root["children"][0]
    replacing = raidz["children"][2]
    assert replacing["type"] == "replacing"
    assert [node["vdev_stats"][1] for node in (root, raidz, replacing)] == [6, 6, 6]
    assert [child["vdev_stats"][1] for child in replacing["children"]] == [5, 7]


def test_a_spare_in_use_is_listed_in_both_places():
    root = tree("hot-spare")
    spare = root["children"][0]["children"][2]["children"][1]
    listed = root["spares"][0]
    assert spare["guid"] == listed["guid"]
    assert listed["vdev_stats"][1:3] == [4, 10]


def test_the_healing_scan_s_counters_fit_its_leaves():
    root = tree("resilver")
    stats = root["scan_stats"]
    new = root["children"][0]["children"][2]["children"][1]
    assert stats[5] <= stats[4]
    assert stats[14] <= stats[5]
    assert new["vdev_stats"][26] == pytest.approx(stats[14] / 8, rel=0.001)
    assert new["vdev_stats"][16] >= new["vdev_stats"][26]
