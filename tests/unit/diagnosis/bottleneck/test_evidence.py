"""What of a pool counts as the disks of a scan."""

from __future__ import annotations

from tests.unit.diagnosis.bottleneck.watching import watched
from zconsole.diagnosis.bottleneck.device_stats import LeafStats
from zconsole.diagnosis.bottleneck.evidence import disks_of
from zconsole.pool.model import IoRates
from zconsole.pool.topology import placed


def test_a_distributed_spare_is_no_disk_of_its_own():
    """It lies on every disk of its dRAID: what it writes they write."""
    frame = watched("draid", 1, 10.0)
    tree = {place.key: place for place in placed(frame.sample.pool.root)}
    rates, past = dict.fromkeys(tree, IoRates()), {key: LeafStats() for key in tree}
    found = {disk.name for disk in disks_of(frame.scans[0].scan, tree, rates, past)}
    leaves = [place.vdev for place in tree.values() if not place.vdev.children]
    spares = {vdev.name for vdev in leaves if vdev.kind == "dspare" and vdev.state == "ONLINE"}
    assert spares
    assert found
    assert not found & spares
