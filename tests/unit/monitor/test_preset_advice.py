from __future__ import annotations

import pytest

from tests.factory import frame, mirror_pool
from zconsole.cli.tunables_options import LIMITED_BY
from zconsole.diagnosis.bottleneck.finding import CAUSES, Verdict
from zconsole.monitor.preset_advice import OUT_OF_REACH, hopeless, likely_limit
from zconsole.pool.model import Scan
from zconsole.tunables.presets import LIMITS

WRITES = "zconsole tunables set zfs_vdev_async_write_min_active=8"


def seen(cause: str, function: str = "resilver", advice: str = "", state: str = "running"):
    return frame(mirror_pool(Scan(function, state)), limit=Verdict(cause, "why", advice=advice))


@pytest.mark.parametrize(
    ("found", "limit"),
    [
        (seen("throttle", advice=WRITES), "new-disk-writes"),
        (seen("throttle", advice="zfs_vdev_scrub_max_active"), "scan-reads"),
        (seen("throttle", "rebuild"), "rebuild"),
        (seen("foreground"), "txg-time"),
        (seen("memory"), "memory"),
        (seen("new-disk"), None),
        (seen("unclear"), None),
        (seen("throttle", state="finished"), None),
        (frame(mirror_pool()), None),
    ],
)
def test_the_preset_aims_at_the_verdict(found, limit):
    assert likely_limit(found) == limit


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_is_lifted_out_of_reach_or_unclear(cause):
    said = hopeless(seen(cause))
    assert (said is not None) == (cause in OUT_OF_REACH)
    assert cause == "unclear" or bool(said) != bool(likely_limit(seen(cause)))


def test_the_command_line_knows_every_limit():
    assert set(LIMITED_BY) == set(LIMITS)
