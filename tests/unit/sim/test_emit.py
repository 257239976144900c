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


def test_the_healing_scan_s_counters_fit_its_leaves():
    root = tree("resilver")
    stats = root["scan_stats"]
    new = root["children"][0]["children"][2]["children"][1]
    assert stats[5] <= stats[4]
    assert stats[14] <= stats[5]
    assert new["vdev_stats"][26] == pytest.approx(stats[14] / 8, rel=0.001)
    assert new["vdev_stats"][16] >= new["vdev_stats"][26]
