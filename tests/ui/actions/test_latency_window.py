from __future__ import annotations

from tests.unit.tunables.pilots import FAST, SLOW
from zconsole.pool.model import Pool, Sample, Vdev
from zconsole.ui.actions.latency_window import LatencyWindow


def sample(t: float, slow: int, fast: int) -> Sample:
    counts = tuple({SLOW: slow, FAST: fast}.get(bucket, 0) for bucket in range(37))
    disk = Vdev("sda", "disk", histograms={"sync_r": counts, "disk_r": counts})
    pool = Pool("tank", "ONLINE", Vdev("tank", "root", children=(disk,)))
    return Sample(t, t, "libzfs", True, pool)


def test_one_sample_says_nothing():
    window = LatencyWindow()
    window.take(sample(0.0, 0, 100))
    assert window.latency is None


def test_only_the_newest_minute_counts():
    window = LatencyWindow()
    for t in range(0, 200, 10):
        window.take(sample(float(t), min(t, 100) * 10, max(0, t - 100) * 10))
    assert window.latency is not None
    assert window.latency < 0.001
