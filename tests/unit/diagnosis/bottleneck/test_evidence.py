"""The evidence for a verdict: a scan's disks, their past, and alternating stages."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.table import rows
from tests.unit.diagnosis.bottleneck.watching import watched
from zconsole.diagnosis.bottleneck.evidence import (
    AVERAGED,
    FRESH,
    LeafStats,
    StageCycles,
    StageCycleTracker,
    disks_of,
)
from zconsole.pool.model import IoRates, Scan, Vdev, placed
from zconsole.sim.source import World
from zconsole.timeline.session import Session

MIB = 1 << 20
TOTAL = 100_000 * MIB
T = 1_800_000_000.0


def test_a_distributed_spare_is_no_disk_of_its_own():
    """It is spread over every disk of its dRAID, whose own writes include its writes."""
    frame = watched("draid", 1, 10.0)
    tree = {place.key: place for place in placed(frame.sample.pool.root)}
    rates, past = dict.fromkeys(tree, IoRates()), {key: LeafStats() for key in tree}
    found = {disk.name for disk in disks_of(frame.scans[0].scan, tree, rates, past)}
    leaves = [place.vdev for place in tree.values() if not place.vdev.children]
    spares = {vdev.name for vdev in leaves if vdev.kind == "dspare" and vdev.state == "ONLINE"}
    assert spares
    assert found
    assert not found & spares


def after(*depths: tuple[int, int], seconds: float = 10.0) -> LeafStats:
    """Return a disk whose scrub queue had these depths, and whose other queues were empty."""
    stats = LeafStats()
    for number, depth in enumerate(depths):
        queues = {"scrub": depth, "sync_r": (0, 0)}
        stats.add(number * seconds, Vdev("sda", "disk", queues=queues), IoRates())
    return stats


def test_depths_are_averaged_from_the_first_sample_on() -> None:
    stats = after((8, 4))
    assert (stats.pending, stats.active, stats.active_mean) == (
        {"scrub": 8},
        {"scrub": 4},
        {"scrub": 4},
    )


def test_an_empty_first_sample_counts_in_the_average() -> None:
    stats = after((0, 0), (8, 4))
    assert stats.pending == {"scrub": pytest.approx(FRESH * 8)}
    assert stats.active == {"scrub": pytest.approx(FRESH * 4)}


def test_a_queue_that_empties_again_falls_off_slowly() -> None:
    stats = after((8, 4), (0, 0))
    assert stats.active == {"scrub": pytest.approx((1 - FRESH) * 4)}
    (active_mean,) = after((0, 3), (0, 6), seconds=AVERAGED).active_mean.values()
    assert 3 < active_mean <= 6


def test_a_queue_that_never_held_anything_takes_no_room() -> None:
    stats = after((0, 0), (1, 0))
    assert "sync_r" not in {*stats.pending, *stats.active, *stats.active_mean}
    assert "scrub" not in stats.active


def turns_of(points, interval=1.0, **fields):
    """Return the cycles after these (walked, issued) MiB, and the stage at the end."""
    past = StageCycleTracker()
    for n, (walked, issued) in enumerate(points):
        past.add(T + n * interval, n * interval, counters(walked, issued, **fields))
    return past.cycles(), past.stage


def counters(walked, issued, skipped=0, stage="scanning", function="scrub", pass_start=None):
    return Scan(
        function,
        "running",
        stage=stage,
        total_bytes=TOTAL,
        scanned_bytes=walked * MIB,
        issued_bytes=issued * MIB,
        skipped_bytes=skipped,
        pass_start=pass_start,
    )


WALKED = [(n * 100, 0) for n in range(10)]
ISSUED = [(900, n * 20) for n in range(1, 10)]


@rows(
    ("points", "fields", "changes", "limited", "issuing", "stage"),
    [
        (WALKED, {}, 0, False, 0.0, "scanning"),
        (WALKED + ISSUED, {}, 1, False, 0.5, "issuing"),
        # What was sent counts as issued long before it was read.
        (WALKED + ISSUED[:1] + [ISSUED[0]] * 8, {}, 1, False, 0.5, "issuing"),
        # Walking again with much still queued is a limit; with nothing, it may be a checkpoint.
        ([*WALKED, *ISSUED, (1000, 180)], {}, 2, True, 0.45, "scanning"),
        ([*WALKED, *ISSUED, (900, 890), (1000, 890)], {}, 2, False, 0.5, "scanning"),
        # Once all is walked, or nearly, turns are forgotten.
        ([*WALKED, *ISSUED, (1000, 180), (TOTAL // MIB, 180)], {}, 0, True, 0.0, None),
        (
            [(TOTAL // MIB - 400 + n * 10, 0) for n in range(3)]
            + [(TOTAL // MIB - 380, n) for n in range(9)],
            {"pass_start": T},
            0,
            False,
            0.0,
            None,
        ),
    ],
)
def test_issuing_before_the_walk_is_over_is_a_turn_and_walking_again_may_be_a_limit(
    points, fields, changes, limited, issuing, stage
):
    turns, at_end = turns_of(points, **fields)
    assert (turns.changes, turns.limited, at_end) == (changes, limited, stage)
    assert turns.issuing == pytest.approx(issuing, abs=0.05)


@rows(("age", "limited"), [(60.0, True), (7300.0, False)])
def test_issuing_before_a_checkpoint_is_due_is_a_limit_at_once(age, limited):
    turns, _ = turns_of(WALKED + ISSUED[:2], pass_start=T - age)
    assert turns.limited == limited


def test_samples_that_see_both_at_every_look_are_turns_too():
    points = [(500 + n * 100, n * 90) for n in range(10)]
    assert turns_of(points, interval=15.0)[0].limited


@rows(
    ("points", "fields"),
    [
        ([(n * 100, n * 100) for n in range(10)], {}),
        ([(500 + n * 100, n * 2) for n in range(10)], {}),
        ([(500 + n * 100, n * 90) for n in range(10)], {"skipped": None, "function": "resilver"}),
    ],
)
def test_issuing_along_with_the_walk_is_none(points, fields):
    assert not turns_of(points, **fields)[0].limited


def test_an_hour_of_samples_is_little_to_remember():
    past = StageCycleTracker()
    for n in range(3600):
        past.add(T + n, float(n), counters(n, 0))
    assert len(past._steps) <= 61
    assert past.cycles() == StageCycles(0, False, False, 0.0)


def test_an_import_is_no_turn():
    past = StageCycleTracker()
    past.add(T, 0.0, counters(900, 0, pass_start=T - 60))
    past.add(T + 1, 1.0, counters(800, 800, pass_start=T))
    past.add(T + 2, 2.0, counters(900, 800, pass_start=T))
    assert past.cycles() == StageCycles(0, False, False, 0.0)


def test_turns_long_ago_do_not_count():
    turns, _ = turns_of([(n, 0) if n % 2 else (n - 1, 5) for n in range(4)], interval=5000.0)
    assert turns.changes <= 1


def test_a_walk_that_is_over_has_no_stage_of_its_own():
    past = StageCycleTracker()
    past.add(T, 0.0, counters(10, 0))
    past.add(T + 1, 1.0, counters(20, 0))
    past.add(T + 2, 2.0, counters(30, 0, stage="issuing"))
    assert past.stage is None


@pytest.mark.slow
@rows(("interval", "first", "last"), [(1.0, 1030, 1090), (5.0, 950, 1200), (15.0, 600, 1300)])
def test_the_verdict_stays_while_the_stages_change(interval, first, last):
    """After 1,065 s it walks again."""
    world, sessions = World("memory-limited", 3), {"demo": Session(), "replay": Session()}
    found = {source: Counter() for source in sessions}
    for n in range(int(first / interval), int(last / interval)):
        world.advance(n * interval)
        raws = world.raws()
        for source, session in sessions.items():
            limit = session.advance([{**raw, "source": source} for raw in raws])[0].limit
            found[source].update([limit.cause] if limit.figures else [])
    assert {source: set(causes) for source, causes in found.items()} == {
        "demo": {"memory"},
        "replay": {"memory"},
    }
