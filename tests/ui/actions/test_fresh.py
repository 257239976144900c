"""Samples from the console's feed count by the time at which they were taken."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from tests.records import replace
from tests.ui.actions.scripted import AGREED, ScriptedSession
from tests.unit.actions.test_executor import Canned
from zconsole.actions.clear import plan_clear
from zconsole.actions.executor import Executor
from zconsole.actions.facts import Refresher, situation_of
from zconsole.actions.plan import Facts
from zconsole.actions.scrub import plan_scrub
from zconsole.errors import UnavailableError
from zconsole.sim.source import World
from zconsole.system.audit import MemoryLog
from zconsole.timeline.feed import Update
from zconsole.timeline.session import Session
from zconsole.ui.actions import session as watching
from zconsole.ui.actions.replace_flow import replace_flow
from zconsole.ui.actions.scan_flow import scans_flow
from zconsole.ui.actions.session import FollowUp
from zconsole.zfs.sources.base import Capabilities

QUESTION = 100.0


@pytest.fixture
def frame():
    (frame,) = Session().advance(World("healthy", 1).raws())
    return replace(frame, looked=QUESTION - 600)


class Asked:
    """Facts of a machine that only has the pool of a frame."""

    def __init__(self, guid: str) -> None:
        self.answer = guid

    async def __call__(self, pool, suspended, paths=()):
        return Facts()

    async def guid(self, pool):
        return self.answer


def round_of(*frames) -> Update:
    return Update(frames, Capabilities("libzfs"))


async def delivered(frame, *rounds, make=plan_scrub, patience=30.0):
    """Run an action whose console gets these rounds after the question; returns its events."""
    watch = FollowUp(SimpleNamespace(hurried=nullcontext))
    watch.take(round_of(frame))
    plan, runner = make(situation_of(frame, Facts())), Canned()
    assert plan.refused is None
    look = Refresher(watch.fresh, Asked(frame.guid))
    executor = Executor(runner, look, MemoryLog(), steady=lambda: QUESTION)

    async def run():
        return [event async for event in executor.run(plan, plan.needs_typed)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching, "PATIENCE", patience)
        running = asyncio.create_task(run())
        for frames in rounds:
            await asyncio.sleep(0.01)
            watch.take(round_of(*frames))
        return (await running), runner.ran


@pytest.mark.parametrize("make", [plan_scrub, plan_clear])
async def test_a_read_that_began_before_the_question_does_not_count(frame, make):
    """Such a read may take any number of rounds, and its result comes after them."""
    silent = replace(frame, problem="no answer for 1 s", looked=QUESTION + 1)
    late = replace(frame, t=frame.t + 5, looked=QUESTION - 1)
    rounds = (silent,), (silent,), (silent,), (late,)
    events, ran = await delivered(frame, *rounds, make=make, patience=0.3)
    assert [e.kind for e in events] == ["refused"]
    assert ran == []
    fresh = replace(late, looked=QUESTION + 2)
    assert (await delivered(frame, (silent,), (late,), (fresh,), make=make))[1]


async def test_an_old_frame_with_a_problem_does_not_count(frame):
    stuck = replace(frame, problem="no answer for 600 s", stale_seconds=600.0, looked=QUESTION + 1)
    events, ran = await delivered(frame, (stuck,), (stuck,), (stuck,), patience=0.3)
    assert [e.kind for e in events] == ["refused"]
    assert "no answer for 600 s" in events[0].text
    assert ran == []


@pytest.mark.parametrize("rounds", [((), ()), ((), (), ())])
async def test_a_pool_that_left_the_list_is_gone(frame, rounds):
    events, ran = await delivered(frame, *rounds)
    assert [(e.kind, e.text) for e in events] == [("failed", "vault is no longer imported")]
    assert ran == []


async def test_a_pool_that_was_exported_is_gone_though_its_frame_stays(frame):
    gone = replace(frame, problem="not imported any more", absent=True, looked=QUESTION + 1)
    events, ran = await delivered(frame, (gone,))
    assert [e.kind for e in events] == ["failed"]
    assert ran == []


async def test_where_no_round_comes_at_all_it_ends_in_time(frame):
    events, ran = await delivered(frame, patience=0.3)
    assert "after you confirmed" in events[-1].text
    assert ran == []


async def test_a_pool_never_seen_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr(watching, "PATIENCE", 0.05)
    watch = FollowUp(SimpleNamespace(hurried=nullcontext))
    with pytest.raises(UnavailableError):
        await watch.fresh("tank", QUESTION)


def another_pool(ui: ScriptedSession) -> None:
    ui.world.pools[0].guid += 1


def another_disk(ui: ScriptedSession) -> None:
    tank = ui.world.pools[0]
    for leaf in (*tank.host.shelf, *tank.leaves()):
        leaf.devid += "-another"


@pytest.mark.parametrize(
    ("scenario", "flow", "row", "check", "change", "said"),
    [
        ("mirror-scrub", scans_flow, "Pause", "mirrors is the same pool: GUID", another_pool,
         "another pool is named mirrors now"),
        ("failed-disk", replace_flow, "bay15", "is the same device: serial", another_disk,
         "is a different device now: serial"),
    ],
)  # fmt: skip
async def test_the_simulated_twin_checks_the_same(scenario, flow, row, check, change, said):
    ui = ScriptedSession(scenario, row)
    key = ui.key("bay05") if scenario == "failed-disk" else ""
    confirmed = ui.confirmed

    async def _confirmed(*confirmations):
        change(ui)
        return await confirmed(*confirmations)

    ui.confirmed = _confirmed
    ui.answers.append(AGREED)
    await flow(ui, key)
    assert check in ui.plan
    assert said in ui.ran[-1]
    assert ui.ran[-1].strip().startswith("Not run: ")
    assert "Nothing was changed: plan it again." in ui.ran[-1]
    assert ui.commands == []
