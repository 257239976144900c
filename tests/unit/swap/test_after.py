"""A checkpoint, beside which no replace comes to its end: what is said, and what leads on."""

from __future__ import annotations

import pytest

from tests.table import rows
from tests.unit.actions.pools import CHECKPOINT, MODERN, at, disk, group, pool, top
from tests.unit.swap.playing import NEW, OLD, Play
from zconsole.pool.model import Activity, Scan
from zconsole.sim.state import Checkpoint
from zconsole.swap.choice import choose
from zconsole.swap.disk import MachineView
from zconsole.swap.refusal import Refusal
from zconsole.swap.store import MemorySwapStore

pytestmark = pytest.mark.slow

PAIR = group("replacing", disk("d00", 1000), disk("n0", 70))
RESILVERING = Scan("resilver", "running", start=900.0)
DISCARD, AGAIN = "zpool checkpoint -d tank", "zpool resilver tank"


def refused(activity: Activity, *scans: Scan, members=(PAIR,)) -> Refusal:
    seen = pool(top("mirror", 0, 2, *members), scans=scans, activities=(activity,))
    choice = choose(MachineView(at(seen, MODERN)), "1000")
    assert choice is not None
    assert choice.refusal is not None
    assert choice.way is None
    return choice.refusal


@rows(
    ("refusal", "commands"),
    [
        (refused(CHECKPOINT), (DISCARD, AGAIN)),
        (refused(CHECKPOINT, RESILVERING), (DISCARD,)),
        (refused(CHECKPOINT, members=(disk("d00", 1000),)), (DISCARD,)),
        (refused(Activity("checkpoint", "running")), (AGAIN,)),
    ],
)
def test_no_swap_begins_beside_a_checkpoint_and_the_commands_are_named(refusal, commands):
    assert "checkpoint" in refusal.why
    assert "CHECKPOINT" in refusal.title
    assert refusal.commands == commands


def blocked() -> Play:
    """A swap whose resilver ended beside a checkpoint."""
    play = Play()
    play.pulled()
    play.look()
    play.hands.insert(NEW, OLD)
    assert play.do().step == "resilver"
    play.pool.checkpoint = Checkpoint(play.now, 1e9)
    while not play.look().alarm:
        play.wait(60.0)
    return play


def command(play: Play) -> str:
    """What the current step runs."""
    plan = play.look().plan
    assert plan is not None
    return plan.steps[0].command


def test_a_swap_that_meets_one_leads_out():
    play = blocked()
    assert command(play) == DISCARD
    play.do()
    play.wait(60.0)
    assert command(play) == AGAIN
    play.do()
    play.until("scrub")


def test_a_resilver_that_ended_before_the_swap_began_is_not_waited_for():
    play = blocked()
    play.do()
    play.wait(60.0)
    play.store = MemorySwapStore()
    play.begin()
    play.wait(60.0)
    assert command(play) == AGAIN
