"""What only one form of a captured pool has, and the formulas that several share.

``ZCONSOLE_CAPTURES=dir pytest tests/unit/zfs/decode`` runs it on another directory.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.table import rows
from tests.unit.zfs.decode.expect import sized
from zconsole.pool.model import Sample
from zconsole.zfs.decode import decode

HERE = Path(__file__).parents[3] / "fixtures" / "captures"
CAPTURES = Path(os.environ.get("ZCONSOLE_CAPTURES", HERE))
STATES = sorted(path.parent for path in CAPTURES.glob("*/*/status.txt"))
NOW = 1795168000.0


@cache
def forms(state: Path) -> dict[str, Sample]:
    raws: dict[str, dict[str, Any]] = {
        path.name: {"text": path.read_text()} for path in state.glob("status*.txt")
    }
    for path in state.glob("status*.json"):
        raws[path.name] = {"status": json.loads(path.read_text())}
    if (state / "libzfs.json").exists():
        raws["libzfs.json"] = {"libzfs": json.loads((state / "libzfs.json").read_text())}
    found = {}
    for name, raw in raws.items():
        (sample,) = decode({"t": NOW, **raw})  # type: ignore[typeddict-item]
        assert isinstance(sample, Sample)
        found[name] = sample
    return found


def test_zpool_printed_what_the_formulas_give() -> None:
    """The percentage in the text is the one computed from the JSON captured with it."""
    found = forms(HERE / "2.4.4" / "replace-running")
    exact, text = found["status.json"].pool.scan, found["status.txt"].pool.scan
    assert round(exact.percent or 0, 2) == text.percent == 38.18
    found = forms(HERE / "2.3.9" / "scrub-paused")
    paused = found["libzfs.json"].pool.scan
    assert round(paused.percent or 0, 2) == found["status.txt"].pool.scan.percent == 12.91
    assert paused.paused_since == found["status.txt"].pool.scan.paused_since
    assert paused.zpool_eta is None


def test_zpools_estimate_of_the_moment_it_was_printed() -> None:
    path = HERE / "2.3.9" / "two-replaces-deferred"
    found = forms(path)
    text = found["status.txt"].pool.scan
    config = json.loads((path / "libzfs.json").read_text())
    stats = config["vdev_tree"]["scan_stats"]
    stats[13] = stats[14] = round((stats[4] - stats[6]) * (text.percent or 0) / 100)
    (sample,) = decode({"t": stats[2] + 2.0, "libzfs": config})
    assert isinstance(sample, Sample)
    scan = sample.pool.scan
    assert scan.zpool_eta == text.zpool_eta == 9.0
    assert sized(scan.zpool_issue_rate) == sized(text.zpool_issue_rate) == "57.4M"


@rows(
    ("state", "filling"),
    [
        ("2.4.4/replace-running", 1),
        ("2.3.9/sequential-rebuild", 1),
        ("2.3.9/two-replaces-deferred", 1),
        ("2.3.9/hot-spare-inuse", 0),
        ("2.1.11/draid-rebuild-to-spare", 1),
    ],
)
def test_libzfs_alone_tells_what_was_attached_and_is_not_filled(state: str, filling: int) -> None:
    for form, sample in forms(HERE / state).items():
        told = [leaf.unfilled for leaf in sample.pool.root.leaves()]
        if form == "libzfs.json":
            assert told.count(True) == filling
            assert told.count(None) == 0
        else:
            assert set(told) == {None}


def test_libzfs_gives_what_the_others_lack() -> None:
    sample = forms(HERE / "2.3.9" / "sequential-rebuild")["libzfs.json"]
    new = next(v for v in sample.pool.root.leaves() if v.name == "virtio-LABDISK5")
    assert new.resilvering
    assert new.scan_processed == 251922944
    assert new.guid == "3525689075818450952"
    assert new.path == "/dev/disk/by-id/virtio-LABDISK5-part1"
    assert new.size_bytes == 1063256064
    assert new.io is not None
    assert (new.io.read_ops, new.io.write_ops) == (3, 810)
    assert (new.io.read_bytes, new.io.write_bytes) == (24576, 254449664)
    assert new.io.timestamp == pytest.approx(66.098535021)
    assert new.queues["sync_r"] == (0, 0)
    assert len(new.histograms["disk_w"]) == 37
    top = sample.pool.root.children[0]
    assert (top.alloc_bytes, top.size_bytes, top.fragmentation) == (251857408, 1006632960, 0.12)
    assert (top.ashift, top.allocating) == (9, True)


@rows("state", STATES)
def test_every_queue_and_histogram_of_a_leaf_is_read(state: Path) -> None:
    queues = {"sync_r", "sync_w", "async_r", "async_w", "scrub", "trim"}
    if state.parent.name != "2.1.11":
        queues.add("rebuild")
    for leaf in forms(state)["libzfs.json"].pool.root.leaves():
        if leaf.state == "ONLINE" and (leaf.kind, leaf.vclass) == ("disk", "normal"):
            assert leaf.queues.keys() == queues, leaf.name
            assert leaf.histograms.keys() == {"disk_r", "disk_w", "sync_r", "sync_w", "async_r"}, (
                leaf.name
            )


def test_a_draid_knows_its_shape_and_its_spares() -> None:
    sample = forms(HERE / "2.1.11" / "draid-rebuild-to-spare")
    for form in ("libzfs.json", "status.txt"):
        draid = sample[form].pool.root.children[0]
        assert (draid.kind, draid.data_disks) == ("draid1", 3), form
        assert draid.spares_left == 0, form
        spared = next(v for v in draid.walk() if v.kind == "spare")
        assert [v.kind for v in spared.children] == ["disk", "dspare"]


def test_nothing_new_goes_to_a_vdev_that_leaves() -> None:
    for form, sample in forms(HERE / "2.3.9" / "removal-running").items():
        assert sample.pool.root.children[0].allocating is False, form
        assert sample.pool.root.children[1].allocating is not False, form
