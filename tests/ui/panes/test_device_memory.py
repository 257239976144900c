"""What is remembered of a pool, so that neither tint nor columns flicker."""

from __future__ import annotations

import pytest

from tests.records import replace
from tests.ui import frames
from tests.ui.drawn import LOOK
from zconsole.diagnosis.bottleneck.finding import Verdict
from zconsole.pool.model import ErrorCounters
from zconsole.ui.panes.device_columns import Worth
from zconsole.ui.panes.device_memory import HOLD, DeviceMemory

FRAME = frames.resilver()
KEYS = {row.vdev.name: row.key for row in FRAME.rows}
SLOW, OTHER = FRAME.rows[6].vdev.name, FRAME.rows[5].vdev.name


def at(seconds, disk="", *, limited=True):
    """The resilver so much later, limited by this disk, by none, or not at all."""
    limit = Verdict("slow-disk", "slow", disk=disk) if limited else None
    sample = replace(FRAME.sample, t=FRAME.t + seconds)
    return replace(FRAME, sample=sample, limit=limit)


@pytest.fixture
def memory():
    return DeviceMemory()


def test_the_disk_named_is_the_culprit(memory):
    memory.take(at(0, SLOW), LOOK)
    assert memory.culprit == KEYS[SLOW]


def test_a_disk_that_is_not_in_the_list_is_none(memory):
    memory.take(at(0, "sdq"), LOOK)
    assert memory.culprit is None


def test_a_verdict_that_wavers_moves_no_tint(memory):
    for seconds, disk in ((0, SLOW), (2, ""), (4, OTHER), (6, SLOW), (8, OTHER)):
        memory.take(at(seconds, disk), LOOK)
        assert memory.culprit == KEYS[SLOW]


def test_the_tint_clears_once_the_disk_was_not_named_for_a_while(memory):
    memory.take(at(0, SLOW), LOOK)
    memory.take(at(HOLD, ""), LOOK)
    assert memory.culprit is None


def test_the_tint_goes_on_to_the_disk_that_limits_for_good(memory):
    memory.take(at(0, SLOW), LOOK)
    memory.take(at(HOLD, OTHER), LOOK)
    assert memory.culprit == KEYS[OTHER]


def test_the_tint_clears_with_the_scan(memory):
    memory.take(at(0, SLOW), LOOK)
    memory.take(at(1, limited=False), LOOK)
    assert memory.culprit is None


def test_a_recording_played_from_before_begins_anew(memory):
    memory.take(at(0, SLOW), LOOK)
    memory.take(at(-60, ""), LOOK)
    assert memory.culprit is None


def test_columns_that_were_needed_stay(memory):
    calm = frames.many()
    row = calm.rows[9]
    bad = replace(row, vdev=replace(row.vdev, note="was sdq", errors=ErrorCounters(1, 0, 0, 0)))
    memory.take(calm, LOOK)
    assert memory.has == Worth()
    memory.take(replace(calm, rows=(*calm.rows[:9], bad, *calm.rows[10:])), LOOK)
    memory.take(calm, LOOK)
    assert memory.has == Worth(errors=True, notes=True)
