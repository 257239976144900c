from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.tunables.conftest import Kernel
from tests.unit.tunables.pilots import FAST, SLOW, flown, pilot
from tests.unit.tunables.steered_kernel import ScrubSource
from zconsole.errors import ZconsoleError
from zconsole.pool.model import Pool, Scan, Vdev
from zconsole.system.day_hours import DayHours
from zconsole.tunables.control import Control
from zconsole.tunables.pilot import Hours, Pilot, Targets, at_risk
from zconsole.tunables.store import TunableStore

pytestmark = pytest.mark.slow

NAME = "zfs_vdev_scrub_max_active"
TIME = "zfs_resilver_min_time_ms"


def lone(rounds: int, bucket: int = SLOW, others: int = 0) -> Pool:
    """Return a scrub on one disk, or on a mirror, after ``rounds`` rounds of requests."""
    counts = tuple(1000 * rounds if i == bucket else 0 for i in range(37))
    disks = tuple(
        Vdev(f"sd{i}", "disk", state="ONLINE", histograms={"sync_r": counts, "disk_r": counts})
        for i in range(1 + others)
    )
    tops = (Vdev("mirror-0", "mirror", children=disks),) if others else disks
    root = Vdev("tank", "root", children=tops)
    return Pool("tank", "ONLINE", root, scans=(Scan("scrub", "running"),))


def take(steered: Pilot, rounds: int, first: int = 0, others: int = 0, bucket: int = SLOW) -> None:
    for i in range(first, first + rounds):
        steered.take([lone(i, bucket, others)], 20.0 * i, 1000.0 + i)


def take_two(steered: Pilot, bucket: int, others: int = 1, rounds: int = 20) -> None:
    """Feed rounds of the mirror tank, which answers fast, and of another pool, data."""
    for i in range(rounds):
        data = replace(lone(i, bucket, others), name="data")
        steered.take([lone(i, FAST, 1), data], 20.0 * i, 1000.0 + i)


@pytest.mark.parametrize(("bucket", "value"), [(FAST, 10), (SLOW, 1)])
async def test_fast_answers_let_the_scan_go_faster_and_slow_ones_slow_it_down(
    kernel, bucket, value
):
    await flown(kernel, ScrubSource(bucket))
    assert kernel.read(NAME) == value


def test_one_look_at_the_requests_says_nothing(kernel):
    take(pilot(kernel), 1, bucket=FAST, others=1)
    assert (kernel.read(NAME), kernel.read(TIME)) == (3, 3000)


@pytest.mark.parametrize(("bucket", "value"), [(FAST, 10), (SLOW, 1)])
def test_the_pool_whose_applications_wait_longest_counts(kernel, bucket, value):
    take_two(pilot(kernel), bucket, rounds=60)
    assert kernel.read(NAME) == value


def test_a_pool_whose_scan_has_just_begun_is_looked_at_first(kernel):
    steered = pilot(kernel)
    take(steered, 1, others=1, bucket=FAST)
    data = replace(lone(1, SLOW, 1), name="data")
    steered.take([lone(1, FAST, 1), data], 20.0, 1001.0)
    assert steered.steering.wanted == 0.0


def test_one_pool_without_redundancy_bounds_it_for_all(kernel):
    take_two(pilot(kernel), SLOW, others=0)
    assert (kernel.read(NAME), kernel.read(TIME)) == (3, 3000)


@pytest.mark.parametrize("found", [(3, 3000), (1, 750), (8, 3000)])
def test_without_redundancy_it_is_never_slower_than_the_defaults(kernel, found):
    """Values found below them are raised to them, and values above may go down to them."""
    assert at_risk(lone(1))
    for name, value in zip((NAME, TIME), found, strict=True):
        kernel.write(name, value)
    steered = pilot(kernel)
    take(steered, 20)
    assert (kernel.read(NAME), kernel.read(TIME)) == (3, 3000)
    steered.restore(2000.0)
    assert (kernel.read(NAME), kernel.read(TIME)) == found


def test_a_pool_that_loses_its_redundancy_goes_back_to_the_defaults_at_once(kernel):
    steered = pilot(kernel)
    take(steered, 20, others=1)
    assert kernel.read(NAME) == 1
    take(steered, 1, first=20)
    assert (kernel.read(NAME), kernel.read(TIME)) == (3, 3000)


def test_below_the_defaults_only_where_that_was_confirmed(kernel):
    take(pilot(kernel, below=True), 20)
    assert kernel.read(NAME) == 1


def test_what_was_as_slow_as_it_may_be_is_soon_faster_again(kernel):
    steered = pilot(kernel)
    take(steered, 20)
    take(steered, 8, first=100, bucket=FAST)
    assert kernel.read(TIME) > 3000


def test_a_target_of_the_hour_counts(kernel):
    always = tuple(Hours(DayHours(*half), 10.0) for half in ((0, 720), (720, 0)))
    take(pilot(kernel, hours=always), 30)
    assert kernel.read(TIME) > 3000


async def test_each_step_is_logged_and_a_mark_for_the_graph(kernel):
    await flown(kernel, ScrubSource(FAST), rounds=5)
    assert any(change.name == TIME for change in kernel.console().past().changes)
    steps = [record for record in kernel.log.recent() if record["action"] == "hold-latency 0.02"]
    assert [record["event"] for record in steps][:4] == ["begun", "ended"] * 2


@pytest.mark.parametrize(
    "somebody", [Kernel.write, lambda kernel, name, value: kernel.console().set({name: value}, 1e3)]
)
async def test_a_value_that_somebody_set_is_named_and_stays_and_the_others_go_back(
    kernel, somebody
):
    steered = await flown(kernel, ScrubSource(FAST))
    assert steered.set_by_others() == ""
    somebody(kernel, NAME, 7)
    assert steered.set_by_others() == NAME
    steered.restore(2000.0)
    assert (kernel.read(NAME), kernel.read(TIME)) == (7, 3000)


class Refusing:
    """A kernel that refuses one tunable."""

    def __init__(self, kernel, name: str) -> None:
        self._inner, self._name = kernel.parameters, name

    def __getattr__(self, name: str):
        return getattr(self._inner, name)

    def write(self, name: str, value: int) -> None:
        if name == self._name:
            raise ZconsoleError(f"{name}={value}: refused")
        self._inner.write(name, value)


def test_a_step_that_failed_in_the_middle_is_taken_back_without_the_file_of_originals(kernel):
    refusing = Refusing(kernel, "zfs_scan_vdev_limit")
    control = Control(refusing, TunableStore(kernel.state), kernel.log, "1:1")
    steered = Pilot(control, refusing, Targets(0.02))
    with pytest.raises(ZconsoleError):
        take(steered, 20, others=1)
    assert kernel.read(NAME) != 3
    (kernel.state / "tunables.json").unlink()
    steered.restore(2000.0)
    assert kernel.read(NAME) == 3
