"""Actions of a console, as shown on the timeline of the rate and in the tunables pane."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.actions.acting import RUN, acting
from tests.ui.actions.scripted import AGREED, Run, ScriptedFeed, ScriptedSession, asking
from tests.ui.drawn import LOOK, flat, text
from tests.unit.tunables.pilots import FAST, SLOW
from zconsole.actions.plan import ActionOutcome, ActionPlan, Facts
from zconsole.diagnosis.bottleneck.finding import TunableStep
from zconsole.diagnosis.bottleneck.tracker import TunableEffects
from zconsole.pool.model import Pool, Sample, SampleFailure, Vdev
from zconsole.sim.source import World
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import DONE, Frame
from zconsole.tunables.effect import TunableEffect
from zconsole.tunables.store import Change
from zconsole.ui.actions.effects import EffectWatch, LatencyWindow
from zconsole.ui.actions.menu import actions_flow
from zconsole.ui.actions.session import Followed, FollowUp, UnderWay
from zconsole.ui.actions.tunables_flow import tunables_flow
from zconsole.ui.actions.tunables_pane import TunablesScreen, about_lines
from zconsole.zfs.sources.base import Capabilities


def test_the_slowest_pool_tells_how_long_applications_wait():
    healthy = frames.healthy()

    def waits(*pools: tuple[int, int]) -> float | None:
        watch = EffectWatch()
        for t in (0.0, 10.0):
            seen = (sample(t, slow * int(t), fast * int(t)) for slow, fast in pools)
            made = (replace(healthy, pool=str(n), sample=one) for n, one in enumerate(seen))
            watch.take(Update(tuple(made), Capabilities("")))
        return watch.latency()

    assert waits((100, 0), (0, 100)) == waits((100, 0)) != waits((0, 100))


async def test_a_change_moves_along_the_timeline_with_its_sample():
    async with acting("few-requests", size=(120, 40)) as a:
        await a.pass_time(60, 10)
        await a.press("T", "F", *RUN, "escape", "escape")
        first = cells_ago(await a.read(a.pass_time(10, 10)))
        assert first <= 2
        assert cells_ago(await a.read(a.pass_time(160, 10))) == first + 10
        assert "zfs_vdev_async_write_min_active 1 to 8" in a.screen


async def test_an_action_and_its_end_are_among_the_events():
    ui = ScriptedSession("resilver", "Start initialize", AGREED)
    await actions_flow(ui, ui.key("bay04"))
    ui.pass_time(20.0, 10.0)
    title = next(r["title"] for r in ui.backend.log.records if r["event"] == "action")
    assert any(event.text == title and event.name == DONE for event in ui.frame.events)


async def test_the_pane_tells_what_a_change_did_before_and_after():
    ui = ScriptedSession("few-requests")
    name = "zfs_vdev_async_write_min_active"
    ui.pass_time(300.0, 20.0)
    said: list[str] = []

    def _read(screen: TunablesScreen) -> None:
        (row,) = (each for each in screen._now if each.setting.tunable.name == name)
        said.append(flat(text(about_lines(row, LOOK, 80))))

    ui.answers.extend((asking("faster-resilver"), AGREED, _read))
    await tunables_flow(ui, "")
    assert "set from 1 to 8: its effect shows" in said[0]
    await ui.wait(300.0, 10.0)
    ui.answers.append(_read)
    await tunables_flow(ui, "")
    assert re.search(
        r"set from 1 to 8: issued \S+ in the minutes before, .*; mean latency ", said[1]
    )
    assert re.search(f" {name} .* \\+\\d+ %, was 1", ui.shown[-1])


def cells_ago(screen: str) -> int:
    """Return the cells from the mark on the time axis to its end, which is now."""
    axis = next(line for line in screen.splitlines() if "▴" in line)
    return 119 - axis.index("▴")


async def test_how_an_action_ended_stays_among_the_events():
    ui = ScriptedSession("six-disk-swap")
    while any(view.scan.active for view in ui.frame.scans):
        ui.pass_time(4 * 3600.0, 2 * 3600.0)
    ui.answers.extend(("Expand raidz2-0", Run(typed="raidz2-0")))
    await actions_flow(ui, ui.key("raidz2-0"))
    ui.pass_time(60.0, 10.0)
    assert "raidz2-0 has grown" in [event.text for event in ui.frame.events]
    assert [e.text for e in ui.frame.events if e.name == DONE] == ["Expand raidz2-0"]


@rows("late", [0.0, 30.0])
@rows("silent", [None, 30.0])
def test_what_was_sampled_before_a_command_was_done_shows_no_end_of_it(late, silent):
    """Right after a replace, the newest sample still shows only the old device: not backed out.

    How long ago it was sampled does not count, nor whether the pool has answered since.
    """
    feed = ScriptedFeed(World("failed-disk", 1), None)
    watch = FollowUp(feed)
    before = feed.later(1.0)
    watch.take(before)
    pool = before.frames[0].pool
    plan = ActionPlan("replace", "", (), pool=pool, follow=lambda s: ActionOutcome(False, "out"))
    watch.follow(plan, Facts(), before.frames[0].t)
    assert list(watch.ended()) == []
    after = feed.later(1.0)
    (frame,) = after.frames
    failure = None if silent is None else SampleFailure(pool, frame.t + silent, 0.0, "no answer")
    shown = replace(frame, age=late, failure=failure)
    watch.take(dataclasses.replace(after, frames=(shown,)))
    assert [outcome.text for _, outcome in watch.ended()] == ["out"]


def tried(effect: TunableEffect, seconds: float = 0.0) -> tuple[Frame, Change]:
    """Return a pool's frame with this effect of a change that was measured, and that change."""
    frame = replace(frames.resilver(), effects=TunableEffects())
    change = Change(frame.t - seconds, "zfs_resilver_min_time_ms", 3000, 6000)
    frame.effects.steps[change.name] = TunableStep(3000, 6000, effect, frame.clock - seconds + 1)
    return frame, change


CLEAR = TunableEffect(1e6, 1.1e6, None, None, issue_clear=True, over=True)


def test_what_a_change_did_is_told_as_the_suggestion_has_it():
    """For windows a sample apart, one said "no clear effect", the other suggested to continue."""
    frame, change = tried(CLEAR)
    assert EffectWatch().effect(frame, change, (change,)) == CLEAR
    later = dataclasses.replace(change, after=12000)
    assert EffectWatch().effect(frame, later, (later,)).gain is None


def test_what_the_same_change_did_before_is_not_told_of_it():
    """The same change was made in the scan before, or was undone and is tried again."""
    frame, first = tried(CLEAR, 3600.0)
    watch, again = EffectWatch(), dataclasses.replace(first, t=first.t + 60.0)
    for change in (again, dataclasses.replace(first, t=first.t + 3500.0)):
        assert watch.effect(frame, change, (first, change)).gain is None
        assert watch.effect(frame, first, (first, change)).gain == CLEAR.gain


@pytest.mark.parametrize(("action", "goes"), [("scrub", True), ("replace", False)])
def test_what_became_of_one_device_stays_when_another_one_is_acted_on(action, goes):
    ui = ScriptedSession("mirror-scrub")
    plan = ActionPlan(action, "Do it", (), pool="mirrors")
    for said in ("it failed", "it failed too"):
        ui.ended(Followed(plan, Facts(), 0.0), ActionOutcome(ok=False, text=said))
    assert ("Do it: it failed" in ui.messages) != goes
    assert "Do it: it failed too" in ui.messages


def test_a_message_follows_the_state_that_it_tells():
    """Below "put Slot 12 back", it said to pull no disk before its resilver ends."""
    ui = ScriptedSession("mirror-scrub")
    now = [ActionOutcome(True, "its resilver has begun: pull no disk", passes=True)]
    plan = ActionPlan("online", "", (), pool="mirrors", follow=lambda _: now[0])
    for later, said in (
        (ActionOutcome(True, "complete"), ["complete"]),
        (ActionOutcome(False, "it is FAULTED"), []),
        (None, []),
    ):
        ui.follow_up.follow(plan, Facts(), 0.0)
        ui.pass_time(1.0, 1.0)
        assert ui.messages == ["its resilver has begun: pull no disk"]
        now.insert(0, later)
        ui.pass_time(1.0, 1.0)
        assert ui.messages == said
        ui.messages.clear()
        del now[0]


@rows("action", ["scrub", "remove"])
def test_what_is_being_stopped_from_here_is_not_said_to_have_failed(action):
    """The sample that showed a stopped scrub came before the command's end: a failure, in red."""
    ui = ScriptedSession("mirror-scrub")
    gone = ActionOutcome(False, "it was canceled")
    ui.follow_up.follow(
        ActionPlan(action, "Do it", (), pool="mirrors", follow=lambda _: gone), Facts(), 0.0
    )
    stop = ActionPlan(action, "Stop it", (), pool="mirrors", supersedes=True)
    ui.under_way.append(UnderWay(stop))
    ui.pass_time(1.0, 1.0)
    assert ui.messages == []
    ui.under_way.clear()  # the command failed: somebody else canceled it
    ui.pass_time(1.0, 1.0)
    assert ui.messages == ["Do it: it was canceled"]


def test_what_a_plan_led_to_is_told_for_its_time_though_later_samples_show_no_end():
    ui = ScriptedSession("mirror-scrub")
    now = [ActionOutcome(True, "it is in place and complete")]
    plan = ActionPlan("replace", "", (), pool="mirrors", follow=lambda _: now[0])
    ui.follow_up.follow(plan, Facts(), 0.0)
    ui.pass_time(1.0, 1.0)
    now.insert(0, None)
    ui.pass_time(1.0, 1.0)
    assert ui.messages == ["it is in place and complete"]


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
