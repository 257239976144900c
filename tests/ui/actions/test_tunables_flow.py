from __future__ import annotations

from tests.factory import frame, mirror_pool
from tests.table import rows
from zconsole.cli.tunables_options import LIMITED_BY
from zconsole.diagnosis.bottleneck.finding import CAUSES, Verdict
from zconsole.pool.model import Scan
from zconsole.tunables.presets import LIMITS
from zconsole.ui.actions.tunables_flow import OUT_OF_REACH, hopeless, likely_limit, suggested

WRITES = "zfs_vdev_async_write_min_active"


def seen(cause: str, function: str = "resilver", tunable: str = "", state: str = "running"):
    return frame(mirror_pool(Scan(function, state)), limit=Verdict(cause, "why", tunable=tunable))


@rows(
    ("found", "limit"),
    [
        (seen("throttle", tunable=WRITES), "new-disk-writes"),
        (seen("throttle", tunable="zfs_vdev_scrub_max_active"), "scan-reads"),
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


@rows("cause", CAUSES)
def test_every_cause_is_lifted_out_of_reach_or_unclear(cause):
    said = hopeless(seen(cause))
    assert (said is not None) == (cause in OUT_OF_REACH)
    assert said is None or ("latency rises" in said) == (cause not in ("cpu", "metadata"))
    assert cause == "unclear" or bool(said) != bool(likely_limit(seen(cause)))


@rows(
    ("advice", "said"),
    [
        (f"zconsole tunables set {WRITES}=8 (now 2)", "set it to 8 (now 2)"),
        (
            f"zconsole tunables set {WRITES}=2 again: 8 did not help",
            "set it to 2 again: 8 did not help",
        ),
        (
            f"wait: what {WRITES}=8 brings shows in some minutes",
            "wait: what 8 brings shows in some minutes",
        ),
        (f"zconsole tunables restore {WRITES}", "restore it"),
        (f"raise {WRITES} (zconsole tunables set)", "raise it"),
        (
            f"reduce the load, or raise {WRITES} from 2 to 4",
            "reduce the load, or raise it from 2 to 4",
        ),
    ],
)
def test_the_list_of_tunables_says_it_of_its_line(advice, said):
    limit = Verdict("throttle", "why", advice=advice, tunable=WRITES)
    found = frame(mirror_pool(Scan("resilver", "running")), limit=limit)
    assert suggested(found) == (WRITES, said)


def test_the_command_line_knows_every_limit():
    assert set(LIMITED_BY) == set(LIMITS)
