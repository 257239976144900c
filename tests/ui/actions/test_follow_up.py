"""Actions of a console, as shown on the timeline of the rate and in the tunables pane."""

from __future__ import annotations

import dataclasses

import pytest

from tests.records import replace
from tests.ui import frames
from tests.ui.actions.acting import RUN, SteppedFeed, acting, pick
from tests.unit.tunables.pilots import FAST, SLOW
from zconsole.actions.plan import ActionOutcome, ActionPlan, Facts
from zconsole.diagnosis.bottleneck.finding import Suggestion, TunableStep, Verdict
from zconsole.pool.model import Pool, Sample, Vdev
from zconsole.sim.source import World
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import DONE
from zconsole.tunables.effect import TunableEffect
from zconsole.tunables.store import Change
from zconsole.ui.actions.effects import EffectWatch, LatencyWindow
from zconsole.ui.actions.session import FollowUp
from zconsole.zfs.sources.base import Capabilities


def test_the_slowest_pool_tells_how_long_applications_wait():
    healthy = frames.healthy()

    def waits(*pools: tuple[int, int]) -> float | None:
        watch = EffectWatch()
        for t in (0.0, 10.0):
            seen = (sample(t, slow * int(t), fast * int(t)) for slow, fast in pools)
            made = (replace(healthy, pool=str(n), sample=one) for n, one in enumerate(seen))
            watch.take(Update(tuple(made), Capabilities("")))
        return watch.waits()

    assert waits((100, 0), (0, 100)) == waits((100, 0)) != waits((0, 100))


async def test_a_change_moves_along_the_timeline_with_its_sample():
    async with acting("few-requests", size=(120, 40)) as a:
        await a.pass_time(60, 10)
        await a.press("T", "F", *RUN, "escape", "escape")
        first = cells_ago(await a.read(a.pass_time(10, 10)))
        assert first <= 2
        assert cells_ago(await a.read(a.pass_time(160, 10))) == first + 10
        assert "zfs_vdev_async_write_min_active 1 to 8" in a.screen


async def test_an_action_is_on_the_timeline_and_among_the_events():
    async with acting("resilver", size=(160, 50)) as a:
        await a.pass_time(60, 10)
        await a.to("")
        await a.press("A")
        await pick(a, "Start initialize")
        await a.press(*RUN, "escape")
        await a.pass_time(20, 10)
        title = next(r["title"] for r in a.log if r["event"] == "action")
        assert any(event.text == title for event in a.app.view_state.frame.events)
        assert "▴" in a.screen


async def test_the_pane_tells_what_a_change_did_before_and_after():
    async with acting("few-requests", size=(80, 24)) as a:
        await a.pass_time(300, 20)
        await a.press("T", "F", *RUN, "escape")
        await a.press("home", *"jjjjjjjjj")
        assert "1 to 8: its effect shows" in a.screen
        said = await a.read(a.pass_time(300, 10))
        assert "1 to 8: issued " in said
        assert " before, " in said
        assert "latency " in said
        assert "was 1, +" in said


async def test_the_pane_says_until_when_a_value_stays():
    async with acting("resilver", size=(80, 24)) as a:
        await a.press("T", "enter", *"5000", "enter", *RUN, "escape")
        assert "was 3000: restored by zconsole in the background once this console" in a.screen
        assert "was 3000: restored when the scan of tank ends" in await a.read(a.press("E"))


def cells_ago(screen: str) -> int:
    """Return the cells from the mark on the time axis to its end, which is now."""
    axis = next(line for line in screen.splitlines() if "▴" in line)
    return 119 - axis.index("▴")


async def test_how_an_action_ended_and_what_it_allows_stay_among_the_events():
    async with acting("six-disk-swap", size=(160, 50)) as a:
        while any(view.scan.active for view in a.app.view_state.frame.scans):
            await a.pass_time(4 * 3600, 2 * 3600)
        await a.to("ST5000DM000")
        await a.press("A")
        await pick(a, "Expand raidz2-0")
        await a.press("tab", *"raidz2-0", "enter", "escape")
        await a.pass_time(60, 10)
        frame = a.app.view_state.frame
        assert "raidz2-0 has grown" in [event.text for event in frame.events]
        assert [e.text for e in frame.events if e.name == DONE] == ["Expand raidz2-0"]


async def test_what_was_sampled_before_a_command_was_done_shows_no_end_of_it():
    """Right after a replace, the newest sample still shows only the old device: not backed out."""
    world = World("failed-disk", 1)
    feed = SteppedFeed(world)
    watch = FollowUp(feed)
    feed.step(1.0)
    before = await feed.next()
    watch.take(before)
    pool = before.frames[0].pool
    plan = ActionPlan("replace", "", (), pool=pool, follow=lambda s: ActionOutcome(False, "out"))
    watch.follow(plan, Facts(), before.frames[0].t)
    assert list(watch.ended()) == []
    feed.step(1.0)
    watch.take(await feed.next())
    assert [outcome.text for _, outcome in watch.ended()] == ["out"]


def tried(effect: TunableEffect, seconds: float = 0.0) -> tuple[EffectWatch, Change]:
    """Return the follow-up of a pool with this effect of a change, and that change."""
    watch, frame = EffectWatch(), frames.resilver()
    change = Change(frame.sample.t - seconds, "zfs_resilver_min_time_ms", 3000, 6000)
    step = TunableStep(3000, 6000, effect, at=frame.sample.clock - seconds + 1)
    raised = Suggestion("{act}", "raise", change.name)
    limit = Verdict("foreground", "", suggestion=raised, tried=step)
    watch.take(Update((replace(frame, limit=limit),), Capabilities("demo")))
    return watch, change


CLEAR = TunableEffect(1e6, 1.1e6, None, None, issue_clear=True, over=True)


@pytest.mark.parametrize(("cause", "doubted"), [("slow-disk", True), ("throttle", False)])
def test_a_faster_scan_is_no_effect_of_a_change_where_a_slow_disk_limited_it(cause, doubted):
    watch, frame = EffectWatch(), frames.resilver()
    change = Change(frame.t + 60.0, "zfs_vdev_scrub_max_active", 3, 10)
    for second in range(300):
        (view, *rest) = frame.scans
        view = replace(view, issue_rate=1e8 if second < 60 else 1.3e8)
        seen = replace(frame, t=frame.t + second, scans=(view, *rest), limit=Verdict(cause, ""))
        watch.take(Update((seen,), Capabilities("demo")))
    effect = watch.effect(frame.pool, change, (change,))
    assert effect.issue_clear is not doubted
    assert ("limited by a slow source disk" in effect.doubt) is doubted


def test_what_a_change_did_is_told_as_the_suggestion_has_it():
    """For windows a sample apart, one said "no clear effect", the other suggested to continue."""
    watch, change = tried(CLEAR)
    pool = frames.resilver().pool
    found = watch.effect(pool, change, (change,))
    assert (found.issue_before, found.issue_after, found.issue_clear) == (1e6, 1.1e6, True)
    later = dataclasses.replace(change, after=12000)
    assert watch.effect(pool, later, (later,)).gain is None


def test_what_the_same_change_did_before_is_not_told_of_it():
    """The same change was made in the scan before, or was undone and is tried again."""
    watch, first = tried(CLEAR, 3600.0)
    pool, again = frames.resilver().pool, dataclasses.replace(first, t=first.t + 60.0)
    for change in (again, dataclasses.replace(first, t=first.t + 3500.0)):
        assert watch.effect(pool, change, (first, change)).gain is None
        assert watch.effect(pool, first, (first, change)).gain == CLEAR.gain


@pytest.mark.parametrize(("action", "goes"), [("scrub", True), ("replace", False)])
async def test_what_became_of_one_device_stays_when_another_one_is_acted_on(action, goes):
    async with acting("mirror-scrub") as a:
        plan = ActionPlan(action, "Do it", (), pool="mirrors")
        a.session.ended(plan, ActionOutcome(ok=False, text="it failed"))
        assert bool(a.session.told) == goes


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
