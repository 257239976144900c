from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.diagnosis.bottleneck.watching import watched
from tests.unit.timeline.following import sample
from zconsole.diagnosis.bottleneck import rules, tracker
from zconsole.diagnosis.bottleneck.advice import (
    foreground,
    more_writes,
    reorder,
    throttle,
)
from zconsole.diagnosis.bottleneck.evidence import NO_DISK, Disk, Evidence, LeafStats, WatchedScan
from zconsole.diagnosis.bottleneck.finding import (
    LARGE_RAISE,
    LEAST_GAIN,
    NOTHING_TO_DO,
    TOO_LITTLE,
    WORTHWHILE,
    Suggestion,
    Verdict,
)
from zconsole.diagnosis.bottleneck.tracker import (
    LASTING,
    BottleneckTracker,
    TunableEffects,
    VerdictFilter,
    ceiling_of,
)
from zconsole.pool.model import IoRates, Scan, Vdev
from zconsole.sim import commands
from zconsole.sim.source import World
from zconsole.timeline.session import Session
from zconsole.tunables.effect import SETTLE, WINDOW, EffectSample

MEMORY = Verdict("memory", "scan memory: …", {"walked": 0.4}, 0.9)
NEW = Verdict("new-disk", "the new disk sdx: 98% busy", {"busy": 0.98}, 0.9)
UNCLEAR = Verdict("unclear", "not clear", {"busy": 0.7})


def told(*rounds):
    """Return the last verdict shown for a (stage, verdict) per second; stages alternate."""
    settled, last = VerdictFilter(), None
    for n, (stage, found) in enumerate(rounds):
        last = settled.push(float(n), stage, found, alternates=True)
    return last


def test_what_limits_for_a_moment_is_not_told():
    issuing = [("issuing", MEMORY)] * 10
    assert told(*issuing, ("issuing", NEW), ("issuing", UNCLEAR)) == MEMORY
    assert told(*issuing, *[("issuing", NEW)] * 20) == NEW


def test_while_it_walks_it_is_told_what_limits_it_when_it_issues():
    found = told(*[("issuing", NEW)] * 10, ("scanning", MEMORY))
    assert found.cause == "new-disk"
    assert found.text == "the new disk sdx: 98% busy, while issuing; now finding blocks"
    assert told(*[("issuing", MEMORY)] * 10, ("scanning", MEMORY)) == MEMORY


def test_before_any_issuing_was_judged_it_is_what_was_found():
    assert told(("scanning", MEMORY)) == MEMORY
    assert told(("issuing", TOO_LITTLE)) == TOO_LITTLE
    assert told(("issuing", None)) is None


THROTTLE = Verdict(
    "throttle", "a throttle: only 2.2 writes in flight", {}, 0.8, Suggestion("raise it")
)


def shown(*found, stage="issuing"):
    """Return the causes shown for one verdict per second."""
    settled = VerdictFilter()
    return [
        verdict.cause if (verdict := settled.push(float(n), stage, each)) else None
        for n, each in enumerate(found)
    ]


def test_a_verdict_changes_only_with_evidence_that_lasts():
    """On a live disk at its limit, 5 of 19 looks called it a throttle."""
    looks = [NEW, NEW, THROTTLE, NEW, NEW, THROTTLE, THROTTLE, UNCLEAR, NEW] * 3
    assert set(shown(*looks)) == {"new-disk"}
    lasting = int(LASTING)
    causes = shown(*[NEW] * 5, *[THROTTLE] * (lasting + 2))
    assert causes[: 5 + lasting] == ["new-disk"] * (5 + lasting)
    assert causes[-1] == "throttle"


def test_a_first_verdict_and_another_stage_are_shown_at_once():
    assert shown(TOO_LITTLE, NEW) == ["unclear", "new-disk"]
    assert shown(NEW, None) == ["new-disk", None]
    settled = VerdictFilter()
    assert settled.push(0.0, "scanning", MEMORY) == MEMORY
    assert settled.push(1.0, "issuing", NEW) == NEW


def test_another_slow_disk_takes_the_place_of_the_first_only_after_a_while():
    slow = Verdict("slow-disk", "a is slow", {}, 0.9, disk="a")
    assert shown(slow, slow._replace(disk="b")) == ["slow-disk"] * 2
    settled = VerdictFilter()
    for n in range(int(LASTING) + 3):
        last = settled.push(float(n), "issuing", slow._replace(disk="b") if n else slow)
    assert last is not None
    assert last.disk == "b"


def test_mirrors_top_out_at_one_disk_each_summed():
    ceiling = watched("mirror-scrub", 1).ceiling
    assert ceiling is not None
    assert ceiling.rate == pytest.approx(3 * 178e6, rel=0.1)
    assert ceiling.share > 0.85


DISKS, FLASH = 200e6, 2e9
"""Best read speed of a disk, bytes/s."""


def evidence(function="scrub", **allocated: int | None) -> Evidence:
    """Return a scan of mirrors with these allocated bytes; those called ``flash…`` are fast."""
    tops, disks = {}, []
    for name, size in allocated.items():
        best = FLASH if name.startswith("flash") else DISKS
        sides = tuple(Vdev(f"{name}-{n}", "disk") for n in range(2))
        tops[name] = Vdev(name, "mirror", children=sides, alloc_bytes=size)
        past = LeafStats(best_read=best)
        disks += [Disk(side.name, name, False, IoRates(), past) for side in sides]
    scan = Scan(function, "running", stage="issuing")
    return Evidence(scan, "issuing", 100e6, tuple(disks), tops)


def test_a_scrub_tops_out_at_the_vdev_that_takes_longest():
    found = ceiling_of(evidence(disks=9_000, flash=1_000, empty=0))
    assert found is not None
    assert found.rate == pytest.approx(10_000 / (9_000 / DISKS))
    assert found.share == pytest.approx(100e6 / found.rate)
    assert found.text == "disks takes longest, at the best observed rates of its disks"


@rows(("flash", "best"), [(1_000, 10_000 / (9_000 / DISKS)), (None, 3e9)])
def test_an_average_over_vdevs_that_are_done_is_no_rate_to_reach(flash, best):
    """The displayed maximum sank for hours, as zpool's average did."""
    seen = evidence(disks=9_000, flash=flash)
    found = ceiling_of(replace(seen, scan=seen.scan._replace(zpool_issue_rate=3e9)))
    assert found is not None
    assert found.rate == pytest.approx(best)


@rows("data", [{"a": 5_000, "b": 5_000}, {"a": 5_000, "b": None}])
def test_equal_vdevs_and_those_of_unknown_size_top_out_together(data):
    found = ceiling_of(evidence(**data))
    assert found is not None
    assert found.rate == pytest.approx(2 * DISKS)
    assert found.text == "the best observed rates of one disk per mirror, summed"


def test_a_resilver_does_not_go_by_what_its_vdevs_hold():
    found = ceiling_of(evidence("resilver", disks=9_000, flash=1_000))
    assert found is not None
    assert found.rate == pytest.approx(DISKS + FLASH)


@pytest.mark.slow
def test_a_known_link_is_the_ceiling_of_the_disks_behind_it():
    ceiling = watched("shared-bus", 1, 110.0, 2.0).ceiling
    assert ceiling is not None
    assert ceiling.rate == pytest.approx(1.6e9, rel=0.03)
    assert ceiling.share > 0.95
    assert "shared link" in ceiling.text


@pytest.mark.slow
def test_the_ceiling_is_not_below_what_zpool_averages_over_the_pass():
    """``best seen 381M/s`` was shown next to ``zpool averages 403M/s over this pass``."""
    frame = watched("resilver", 1, 60.0, 1.0)
    assert frame.scan is not None
    average, rate = frame.scan.scan.zpool_issue_rate, frame.scan.issue_rate
    assert average is not None
    assert rate is not None
    assert rate < average, "it was faster before anybody watched"
    assert frame.ceiling is not None
    assert frame.ceiling.rate >= average
    assert frame.ceiling.share == pytest.approx(rate / frame.ceiling.rate)


def test_while_it_is_paused_the_best_seen_stays():
    world, session = World("mirror-scrub", 1), Session(flags=("DEMO",))
    for second in range(0, 30, 2):
        world.advance(second)
        before = session.advance(world.raws())[0].ceiling
    assert before is not None
    scan = world.pools[0].scan
    assert scan is not None
    scan.paused_since = world.pools[0].now
    world.advance(40)
    frame = session.advance(world.raws())[0]
    assert frame.scan is not None
    assert frame.scan.scan.state == "paused"
    assert frame.ceiling == before._replace(share=None)


def test_the_best_seen_stays_when_the_scrub_is_started_again():
    """``best unknown`` came back, beside a legend that tells what the disks did so far."""
    world, session = World("mirror-scrub", 1), Session(flags=("DEMO",))
    (pool,) = world.pools

    def ceiling_after(samples: int):
        for _ in range(samples):
            world.advance(pool.t + 2 - world.scenario.age)
            (frame,) = session.advance(world.raws())
        return frame.ceiling

    before = ceiling_after(15)
    assert before is not None
    commands.scrub(pool, "stop")
    assert ceiling_after(2) is None, "no scan runs"
    commands.scrub(pool, "start")
    assert ceiling_after(2) == before._replace(share=None)
    next(pool.leaves()).guid += 1  # another disk
    assert ceiling_after(1) is None


def test_walking_metadata_has_no_ceiling_where_issuing_follows():
    seen = evidence(disks=9_000)._replace(stage="scanning")
    assert ceiling_of(seen) is None
    assert ceiling_of(seen._replace(stage="issuing")) is not None
    assert ceiling_of(seen._replace(scan=seen.scan._replace(two_stage=False))) is not None
    assert ceiling_of(seen._replace(scan=seen.scan._replace(function="rebuild"))) is not None


def test_disks_that_were_only_seen_idle_tell_no_ceiling():
    """``the system's ceiling`` was 100 MB/s while a tunable limited the scrub to 3 MB/s."""
    frame = watched("scrub-delay", 3)
    assert frame.limit is not None
    assert frame.limit.cause == "throttle"
    assert frame.ceiling is None


def test_between_two_judgements_the_share_of_the_best_is_that_of_the_rate_of_now(monkeypatch):
    """``86 % of best`` was shown for a rate above the best, in a pool judged every 20 seconds."""
    monkeypatch.setattr(tracker, "FEW", 0)  # every pool is treated as one of many disks
    world, session = World("six-disk-swap", 7), Session()
    for second in range(8):
        world.advance(float(second))
        (frame,) = session.advance(world.raws())
        if frame.ceiling is not None and frame.scan.issue_rate is not None:
            assert frame.scan.issue_rate <= frame.ceiling.rate
            assert frame.ceiling.share == frame.scan.issue_rate / frame.ceiling.rate
    assert frame.ceiling is not None


RATE = 100e6
TIME, READS = "zfs_resilver_min_time_ms", "zfs_vdev_scrub_max_active"
WRITES = "zfs_vdev_async_write_min_active"
LEAST = "zfs_vdev_scrub_min_active"
"""What is suggested next against applications, after TIME."""
REORDER = partial(reorder, blocks="scattered blocks")
CALM = 300
JUDGED = int(SETTLE + WINDOW)


class Play:
    """A scan at a given rate, with a sample every second, or every ``every`` seconds."""

    def __init__(self, tunables: Mapping[str, int], every: int = 1) -> None:
        self.effects, self.clock, self.tunables = TunableEffects(), 0.0, dict(tunables)
        self.every = every

    def go_on(self, seconds: int, rate: float | None = RATE, **tunables: int) -> None:
        self.tunables |= tunables
        for _ in range(0, seconds, self.every):
            self.effects.add(EffectSample(self.clock, rate, None), self.tunables)
            self.clock += self.every

    @property
    def seen(self) -> Evidence:
        scan = Scan("resilver", state="running")
        seen = Evidence(scan, "issuing", RATE, tunables=self.tunables, steps=self.effects.steps)
        return seen._replace(foreground_writes=20e6)


def played(name: str, before: int, after: int, gain: float, seconds: int = JUDGED + 1) -> Play:
    """Return a raise after a calm time, with its effect."""
    play = Play({name: before})
    play.go_on(CALM)
    play.go_on(seconds, RATE * (1 + gain), **{name: after})
    return play


def test_a_step_that_helped_leads_to_the_next():
    assert "to 12000 (now 6000" in foreground(played(TIME, 3000, 6000, 0.3).seen).text


def test_a_step_is_measured_where_samples_are_rare_before_the_next_is_suggested():
    """With a sample per minute it was forgotten, and the next step suggested without any effect."""
    play = Play({TIME: 3000}, every=60)
    play.go_on(4 * CALM)
    play.go_on(CALM, **{TIME: 6000})
    assert "wait: what" in foreground(play.seen).text
    play.go_on(CALM)
    assert "6000 had no clear effect" in foreground(play.seen).text


@rows("gain", [LEAST_GAIN + 0.01, WORTHWHILE - 0.01])
def test_a_step_that_brought_little_stays_and_leads_to_another_tunable(gain):
    """ "to 12000" was suggested after 6000 had brought 7 %, though another tunable brought 29 %."""
    found = foreground(played(TIME, 3000, 6000, gain).seen)
    assert (found.act, found.tunable) == ("increase", LEAST)
    assert throttle(played(READS, 3, 6, gain).seen).tunable == "zfs_scan_vdev_limit"
    assert more_writes(played(WRITES, 2, 8, gain).seen) == NOTHING_TO_DO


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
    """In the demo, 264M/s to 301M/s was no clear effect, yet "to 12000" was suggested."""
    play = Play({TIME: 3000})
    for second in range(CALM):
        play.go_on(1, RATE * (0.6 if second % 4 else 1.6))
    for second in range(JUDGED + 1):
        play.go_on(1, RATE * (1 + gain) * (0.6 if second % 4 else 1.6), **{TIME: 6000})
    step = play.effects.steps[TIME]
    assert step.effect.gain == pytest.approx(gain)
    assert not step.helped
    told = "{act} again: 6000 had no clear effect"
    assert foreground(play.seen) == Suggestion(told, "set", TIME, 3000)


def test_until_it_is_measured_the_advice_is_to_wait():
    found = foreground(played(TIME, 3000, 6000, 0.0, seconds=JUDGED).seen)
    assert found == Suggestion("{act} shows in some minutes", "wait", TIME, 6000)


def test_where_nothing_was_watched_before_a_step_nobody_is_told_to_wait():
    """It said "wait: what 6000 brings shows in some minutes", and no figure ever came."""
    play = Play({TIME: 3000})
    play.go_on(5, None)
    play.go_on(1, **{TIME: 6000})
    assert foreground(play.seen).tunable == LEAST
    play = Play({TIME: 3000})
    play.go_on(1)
    play.go_on(1, **{TIME: 6000})
    assert foreground(play.seen).act == "wait"
    play.go_on(JUDGED, 2 * RATE)
    assert play.effects.steps[TIME].helped, "roughly"


def test_zpools_average_of_a_pass_is_no_rate_before_a_step():
    found, scan = BottleneckTracker(), Scan("resilver", state="running")
    for second in range(10):
        one = replace(sample(second, scan), tunables={TIME: 3000 if second < 9 else 6000})
        found.push(one, {}, {}, [WatchedScan(scan, "issuing", RATE, averaged=True)])
    effect = found.effects.steps[TIME].effect
    assert effect is not None
    assert (effect.issue_before, effect.over) == (None, True)


def test_what_was_tried_and_put_back_is_not_suggested_again():
    play = played(TIME, 3000, 6000, 0.0)
    play.go_on(10, **{TIME: 3000})
    assert foreground(play.seen).tunable == LEAST
    play = played(READS, 3, 6, 0.0)
    play.go_on(10, **{READS: 3})
    assert REORDER(play.seen, NO_DISK) == NOTHING_TO_DO


def test_what_was_tried_stays_known_where_an_autopilot_puts_back_what_it_found():
    """From its gentle 500 back to 3000 is also a large raise: 6000 was suggested again."""
    play = played(TIME, 3000, 6000, 0.0)
    play.go_on(10, **{TIME: 3000})
    play.go_on(CALM, **{TIME: 500})
    play.go_on(CALM, **{TIME: 3000})
    assert foreground(play.seen).tunable == LEAST


def test_what_was_set_back_with_some_minutes_of_samples_is_not_suggested_again():
    """The list said "no clear effect" before it was set back, and 6000 was suggested again."""
    play = played(TIME, 3000, 6000, 0.0, seconds=int(SETTLE) + 20)
    play.go_on(10, **{TIME: 3000})
    assert foreground(play.seen).tunable == LEAST


def test_a_gain_that_another_limit_explains_is_not_a_tunables_effect(monkeypatch):
    """The timeline calls it unmeasurable: a slow disk was replaced as the tunable was raised."""
    judged = []
    slow = Verdict("slow-disk", "a is slow", {}, 0.9, disk="a")

    def judge(seen: Evidence) -> Verdict:
        judged.append(seen)
        return slow if seen.rate == RATE else THROTTLE

    monkeypatch.setattr(rules, "judge", judge)
    found, scan = BottleneckTracker(), Scan("resilver", state="running")
    for second in range(CALM + JUDGED + 2):
        raised = second >= CALM
        one = replace(sample(second, scan), tunables={TIME: 6000 if raised else 3000})
        seen = WatchedScan(scan, "issuing", RATE * (2 if raised else 1))
        found.push(one, {}, {}, [seen])
    effect = judged[-1].steps[TIME].effect
    assert effect is not None
    assert effect.gain == 1.0
    assert effect.doubt == "limited by a slow source disk"


def test_a_step_across_stages_is_not_said_to_have_had_no_effect():
    effects, tunables = TunableEffects(), {TIME: 3000}
    for second in range(CALM + JUDGED + 2):
        later = second >= CALM
        tunables = {TIME: 6000 if later else 3000}
        rate, stage = RATE / (8 if later else 1), ["issuing", "scanning"][later]
        effects.add(EffectSample(float(second), rate, None, stage=stage), tunables)
    seen = Play(tunables).seen._replace(steps=effects.steps)
    assert effects.steps[TIME].effect.doubt == "issuing before, scanning after"
    assert foreground(seen).tunable == LEAST


@rows(
    ("scenario", "name", "value"),
    [("memory-limited", "zfs_scan_mem_lim_fact", 10), ("foreground", TIME, 750)],
)
def test_a_suggestion_never_outlives_the_value_that_it_is_about(scenario, name, value):
    """Set to 10 as suggested, "set it to 10" stood for minutes; 750 was set, "now 3000" stood."""
    world, session = World(scenario, 1), Session(flags=("DEMO",))
    for second in range(0, 600, 2):
        world.advance(float(second))
        (frame,) = session.advance(world.raws())
        if frame.limit and frame.limit.suggestion.tunable == name:
            break
    stale = frame.limit.suggestion
    assert stale.tunable == name
    world.pools[0].tunables[name] = value
    world.advance(second + 2.0)
    (frame,) = session.advance(world.raws())
    assert frame.limit.suggestion != stale


def test_a_throttle_goes_on_to_the_next_tunable():
    usual = {READS: 3, "zfs_scan_vdev_limit": 16 << 20}
    play = Play(usual)
    assert throttle(play.seen).tunable == READS
    play.go_on(CALM)
    play.go_on(JUDGED + 1, **{READS: 2 * usual[READS]})
    play.go_on(10, **{READS: usual[READS]})
    assert throttle(play.seen).tunable == "zfs_scan_vdev_limit"


@rows("after", [3001, int(LARGE_RAISE * 3000) - 1])
def test_a_small_step_says_nothing(after: int):
    assert played(TIME, 3000, after, 0.0).effects.steps == {}


def test_a_step_that_is_taken_back_before_it_was_measured_is_forgotten():
    play = played(TIME, 3000, 6000, 0.0, seconds=20)
    play.go_on(10, **{TIME: 3000})
    assert play.effects.steps == {}


def test_after_a_step_that_cannot_be_measured_no_further_one_is_suggested():
    """Seen late, or cut short by another change, it was forgotten, and the value doubled again."""
    play = Play({TIME: 3000})
    play.go_on(1)
    play.go_on(JUDGED + 1, **{TIME: 6000})
    assert foreground(play.seen).tunable == LEAST
    play = played(TIME, 3000, 6000, 0.0, seconds=20)
    play.go_on(2, zfs_scan_vdev_limit=1)
    play.go_on(2, zfs_scan_vdev_limit=2)
    assert foreground(play.seen).tunable == LEAST


def test_steps_set_at_one_time_are_measured_together():
    play = Play({TIME: 3000, WRITES: 2})
    play.go_on(CALM)
    play.go_on(JUDGED + 1, 2 * RATE, **{TIME: 6000, WRITES: 8})
    assert all(play.effects.steps[name].helped for name in (TIME, WRITES))
