from __future__ import annotations

import pytest

from tests.unit.swap.playing import EMPTY, OLD, Play, fresh
from zconsole.actions.replace import plan_batch
from zconsole.actions.target import Swap
from zconsole.swap.checklist import REPLACE_FIRST
from zconsole.swap.choice import choose
from zconsole.swap.disk import is_being_replaced, leaves_of
from zconsole.swap.session import Guide
from zconsole.swap.several import assigned, begin_adopted, begin_replaced, urgent_first

TWO = (OLD, "Slot 08")


def shelf() -> Play:
    """A shelf with a free disk for each of two."""
    play = Play(lights=True)
    play.hands.insert(0, EMPTY)
    play.pool.host.shelf = [*play.pool.host.shelf, fresh()]
    return play


def replaced(play: Play, most: int = 9) -> tuple[str, ...]:
    """Replace both at once; the ids of the checklists. ``most``: commands that run."""
    v = play.view()
    targets = urgent_first(v, filter(None, (v.target(str(play.leaf(b).guid)) for b in TWO)))
    swaps = tuple(Swap(old, new) for old, new in assigned(v, targets).items())
    events = play.execute(plan_batch(play.situation(play.pool), swaps))[:most]
    begun = begin_replaced(v, swaps, events, play.store, play.now)
    return tuple(c.id for c in begun)


def opened(play: Play, name: str) -> None:
    known = {c.id: c for c in play.store.read()}
    play.guide = Guide(known[name], play.store)
    play.steps.clear()


def pulled(play: Play, name: str, bay: str) -> None:
    """Lead one checklist from the light to its report."""
    opened(play, name)
    play.until("light")
    assert play.do().title.startswith(f"Pull {bay}")
    play.hands.pull(bay)
    assert play.look().step == "light-off"
    play.do()
    play.answer("no-scrub")
    assert play.checklist.state == "done"


@pytest.mark.slow
def test_each_disk_of_a_batch_is_led_to_its_pull_after_the_resilver():
    play = shelf()
    first, second = replaced(play)
    opened(play, first)
    stage = play.look()
    assert (stage.step, play.checklist.mode) == ("resilver", REPLACE_FIRST)
    assert any(entry.command.startswith("zpool replace tank") for entry in play.checklist.log)
    pulled(play, first, OLD)
    pulled(play, second, "Slot 08")


def test_the_other_old_disk_of_a_batch_may_go_first():
    play = shelf()
    first, second = replaced(play)
    opened(play, first)
    play.until("light")
    opened(play, second)
    play.until("light")
    opened(play, first)
    play.hands.pull("Slot 08")
    assert not play.look().alarm


def test_a_replace_that_failed_gets_no_checklist():
    play = shelf()
    v = play.view()
    targets = urgent_first(v, filter(None, (v.target(str(play.leaf(b).guid)) for b in TWO)))
    swaps = tuple(Swap(old, new) for old, new in assigned(v, targets).items())
    play.hands.pull(EMPTY)
    events = play.execute(plan_batch(v.situation, swaps))
    assert begin_replaced(v, swaps, events, play.store, play.now) == ()


@pytest.mark.slow
def test_disks_that_somebody_replaces_already_get_their_checklists_too():
    play = shelf()
    replaced(play)
    play.store.kept.clear()
    play.wait(30.0)
    v = play.view()
    keys = [target.key for target in leaves_of(v.pool) if is_being_replaced(target)]
    assert len(keys) == 2
    first, second = begin_adopted(v, keys, play.store, play.now)
    play.wait(1.0)
    assert begin_adopted(play.view(), keys, play.store, play.now) == (first, second)
    (entry,) = [entry for entry in first.log if entry.step == "replace"]
    assert entry.text.startswith("started elsewhere: ")
    pulled(play, next(c.id for c in (first, second) if c.old.bay == OLD), OLD)


def test_the_new_disk_of_a_replace_is_not_swapped_as_an_old_one():
    play = shelf()
    replaced(play)
    (group, *_) = [t.group for t in leaves_of(play.view().pool) if is_being_replaced(t)]
    choice = choose(play.view(), group.children[-1].guid)
    assert "takes the place of" in choice.refused
