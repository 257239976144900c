"""A tunable that was raised without gain is not suggested to be raised further."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.table import rows
from zconsole.diagnosis.bottleneck.advice import (
    HOLD,
    foreground,
    more_writes,
    reorder,
    throttle,
)
from zconsole.diagnosis.bottleneck.evidence import NO_DISK, Evidence
from zconsole.diagnosis.bottleneck.finding import NOTHING_TO_DO, Suggestion
from zconsole.diagnosis.bottleneck.trials import LARGE, LEAST_GAIN, TunableTrials
from zconsole.pool.model import Scan
from zconsole.tunables.effect import SETTLE, WINDOW

RATE = 100e6
TIME, READS = "zfs_resilver_min_time_ms", "zfs_vdev_scrub_max_active"
WRITES = "zfs_vdev_async_write_min_active"
REORDER = reorder("scattered blocks")
CALM = 300
JUDGED = int(SETTLE + WINDOW)


class Play:
    """A scan at a rate, a sample a second, or ``every`` so many."""

    def __init__(self, tunables: Mapping[str, int], every: int = 1) -> None:
        self.trials, self.clock, self.tunables = TunableTrials(), 0.0, dict(tunables)
        self.every = every

    def go_on(self, seconds: int, rate: float = RATE, **tunables: int) -> None:
        self.tunables |= tunables
        for _ in range(0, seconds, self.every):
            self.trials.take(self.clock, rate, self.tunables)
            self.clock += self.every

    @property
    def seen(self) -> Evidence:
        scan = Scan("resilver", state="running")
        return Evidence(scan, "issuing", RATE, tunables=self.tunables, steps=self.trials.steps)


def played(name: str, before: int, after: int, gain: float, seconds: int = JUDGED + 1) -> Play:
    """A raise after a calm time, and what it brought."""
    play = Play({name: before})
    play.go_on(CALM)
    play.go_on(seconds, RATE * (1 + gain), **{name: after})
    return play


def test_a_step_that_helped_leads_to_the_next():
    assert "to 12000 (now 6000" in foreground(played(TIME, 3000, 6000, 0.3).seen).text


def test_a_step_is_measured_where_samples_are_rare_before_the_next_is_suggested():
    """At a sample a minute it was forgotten, and the next step suggested, though it did nothing."""
    play = Play({TIME: 3000}, every=60)
    play.go_on(4 * CALM)
    play.go_on(CALM, **{TIME: 6000})
    assert "wait: what" in foreground(play.seen).text
    play.go_on(CALM)
    assert "6000 had no clear effect" in foreground(play.seen).text


@rows("gain", [0.0, -0.2, LEAST_GAIN - 0.01])
@rows(
    ("name", "before", "after", "told"),
    [(TIME, 3000, 6000, foreground), (WRITES, 2, 8, more_writes), (READS, 3, 6, REORDER)],
)
def test_a_step_that_did_not_help_is_to_be_put_back(name, before, after, told, gain):
    found = told(played(name, before, after, gain).seen, NO_DISK)
    why = "did not help" if gain else "had no clear effect"
    assert found == Suggestion(f"{{act}} again: {after} {why}", "set", name, before)


@rows("gain", [0.14, 0.27])
def test_a_gain_within_what_the_rate_varies_by_leads_to_no_further_step(gain: float):
    """Seen on the demo: 264M/s before, 301M/s after, called no clear effect beside "to 12000"."""
    play = Play({TIME: 3000})
    for second in range(CALM):
        play.go_on(1, RATE * (0.6 if second % 4 else 1.6))
    for second in range(JUDGED + 1):
        play.go_on(1, RATE * (1 + gain) * (0.6 if second % 4 else 1.6), **{TIME: 6000})
    step = play.trials.steps[TIME]
    assert step.effect.gain == pytest.approx(gain)
    assert not step.helped
    told = "{act} again: 6000 had no clear effect"
    assert foreground(play.seen) == Suggestion(told, "set", TIME, 3000)


def test_until_it_is_measured_the_advice_is_to_wait():
    found = foreground(played(TIME, 3000, 6000, 0.0, seconds=JUDGED).seen)
    assert found == Suggestion("{act} shows in some minutes", "wait", TIME, 6000)


def test_what_was_tried_and_put_back_is_not_suggested_again():
    play = played(TIME, 3000, 6000, 0.0)
    play.go_on(10, **{TIME: 3000})
    assert foreground(play.seen) == HOLD
    play = played(READS, 3, 6, 0.0)
    play.go_on(10, **{READS: 3})
    assert REORDER(play.seen, NO_DISK) == NOTHING_TO_DO


def test_what_was_tried_stays_known_where_an_autopilot_puts_back_what_it_found():
    """From its gentle 500 back to 3000 is a large raise, too: 6000 was suggested again."""
    play = played(TIME, 3000, 6000, 0.0)
    play.go_on(10, **{TIME: 3000})
    play.go_on(CALM, **{TIME: 500})
    play.go_on(CALM, **{TIME: 3000})
    assert foreground(play.seen) == HOLD


def test_a_throttle_goes_on_to_the_next_tunable():
    usual = {READS: 3, "zfs_scan_vdev_limit": 16 << 20}
    play = Play(usual)
    assert throttle(play.seen).tunable == READS
    play.go_on(CALM)
    play.go_on(JUDGED + 1, **{READS: 2 * usual[READS]})
    play.go_on(10, **{READS: usual[READS]})
    assert throttle(play.seen).tunable == "zfs_scan_vdev_limit"


@rows("after", [3001, int(LARGE * 3000) - 1])
def test_a_small_step_says_nothing(after: int):
    assert played(TIME, 3000, after, 0.0).trials.steps == {}


def test_a_step_that_is_taken_back_before_it_was_measured_is_forgotten():
    play = played(TIME, 3000, 6000, 0.0, seconds=20)
    play.go_on(10, **{TIME: 3000})
    assert play.trials.steps == {}


def test_after_a_step_that_cannot_be_measured_no_further_one_is_suggested():
    """Seen too late, or cut by another change: it was forgotten, and the value doubled again."""
    play = Play({TIME: 3000})
    play.go_on(1)
    play.go_on(JUDGED + 1, **{TIME: 6000})
    assert foreground(play.seen) == HOLD
    play = played(TIME, 3000, 6000, 0.0, seconds=20)
    play.go_on(2, zfs_scan_vdev_limit=1)
    play.go_on(2, zfs_scan_vdev_limit=2)
    assert foreground(play.seen) == HOLD


def test_steps_set_at_one_time_are_measured_together():
    play = Play({TIME: 3000, WRITES: 2})
    play.go_on(CALM)
    play.go_on(JUDGED + 1, 2 * RATE, **{TIME: 6000, WRITES: 8})
    assert all(play.trials.steps[name].helped for name in (TIME, WRITES))
