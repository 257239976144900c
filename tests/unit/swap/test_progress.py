"""Whole swaps, from the failing disk to the report."""

from __future__ import annotations

import pytest

from tests.records import replace
from tests.unit.swap.playing import EMPTY, OLD, Play
from zconsole.actions.target import find
from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.hardware.device import Contents
from zconsole.sim import commands, lifecycle
from zconsole.sim.build import Build
from zconsole.sim.disk import CANT_OPEN, FAULTED, Leaf
from zconsole.sim.models import RED_4T, SSD_400G
from zconsole.sim.state import PoolState
from zconsole.swap.checklist import DONE, PULL_FIRST, REPLACE_FIRST, SPARE_FIRST
from zconsole.swap.choice import choose
from zconsole.swap.guide import Guide, started
from zconsole.swap.progress import current
from zconsole.swap.store import FileSwapStore

NEW, SMALL = 0, 1
"""Disks in the drawer."""


@pytest.fixture
def play() -> Play:
    return Play()


def fresh() -> Leaf:
    """One more new disk."""
    leaf = Build(7, "more").leaf(RED_4T)
    leaf.slot = 12
    return leaf


def test_the_right_way(play: Play):
    assert play.begin().step == "offline"
    assert play.do().step == "pull"
    play.hands.pull(OLD)
    assert play.look().step == "insert"
    play.hands.insert(NEW, OLD)
    stage = play.look()
    assert stage.step == "replace"
    assert stage.final
    assert play.do().step == "resilver"
    assert play.until("scrub").plan is not None
    assert play.do().over
    assert play.steps == ["offline", "pull", "insert", "replace", "resilver", "scrub", "report"]
    assert play.checklist.state == DONE
    assert play.pool.tops[0].lost() == 0
    commands_run = [entry.command.split()[1] for entry in play.checklist.log if entry.command]
    assert commands_run == ["offline", "replace", "scrub"]


def test_a_wrong_disk_is_noticed_put_back_and_resilvered_before_anything_else(play: Play):
    play.begin()
    play.do()
    play.hands.pull("Slot 06")
    stage = play.look()
    assert stage.alarm
    assert "WRONG DISK: put Slot 06" in stage.title
    assert stage.plan is None
    play.hands.insert(2, "Slot 06")
    stage = play.look()
    assert stage.alarm
    assert stage.plan is not None
    assert stage.plan.steps[0].argv[:3] == ("zpool", "online", "tank")
    assert play.do().alarm, "it is not complete yet"
    stage = play.refilled()
    assert stage.title.startswith(f"Pull {OLD}")
    play.hands.pull(OLD)
    assert play.look().step == "insert"


def test_both_disks_out_the_wrong_one_comes_first(play: Play):
    play.begin()
    play.do()
    play.hands.pull("Slot 06")
    play.look()
    play.hands.pull(OLD)
    assert "WRONG DISK: put Slot 06" in play.look().title
    play.hands.insert(2, "Slot 06")
    play.do()
    assert play.refilled().step == "insert"


def test_a_pool_that_a_wrong_pull_suspends_is_cleared(play: Play):
    play.begin()
    play.do()
    other = play.leaf("Slot 01")
    lifecycle.lose(play.pool, other, FAULTED, aux=11)
    play.hands.pull("Slot 06")
    assert play.pool.suspended
    stage = play.look()
    assert stage.alarm
    assert any("suspended" in text for text in stage.text)
    play.hands.insert(2, "Slot 06")
    stage = play.look()
    assert stage.alarm
    assert stage.plan is not None
    assert stage.plan.action == "clear"
    play.do()
    assert play.refilled().step in ("offline", "pull")


def test_replaced_first_by_a_free_disk_and_pulled_afterwards(play: Play):
    play.hands.insert(NEW, EMPTY)
    stage = play.begin()
    assert play.checklist.mode == REPLACE_FIRST
    assert stage.step == "replace"
    assert play.do().step == "resilver"
    assert play.until("pull").title.startswith(f"Pull {OLD}")
    play.hands.pull(EMPTY)
    assert "WRONG DISK" in play.look().title
    play.hands.insert(1, EMPTY)
    play.do()
    assert play.refilled().step == "pull"
    play.hands.pull(OLD)
    assert play.look().step == "scrub"
    assert play.answer("no-scrub").over


def test_a_hot_spare_stands_in_first_and_returns(play: Play):
    spare = fresh()
    play.pool.spares.append(spare)
    assert play.begin().step == "spare"
    assert play.checklist.mode == SPARE_FIRST
    play.do()
    assert play.until("offline").warnings == ()
    play.do()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(NEW, OLD)
    play.do()
    play.until("scrub")
    assert not any(leaf is spare for leaf in play.pool.tops[0].leaves())


def test_a_spare_that_acted_first_is_left_to_stand_in(play: Play):
    spare = fresh()
    play.pool.spares.append(spare)
    commands.replace(play.pool, str(play.leaf().guid), str(spare.guid))
    lifecycle.lose(play.pool, play.leaf(), state=5, aux=11)
    assert play.begin().step == "pull"
    assert play.checklist.mode == PULL_FIRST
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(NEW, OLD)
    play.do()
    play.until("scrub")


def test_a_replace_that_somebody_else_began_is_gone_on_with(play: Play):
    play.hands.insert(NEW, EMPTY)
    commands.replace(play.pool, str(play.leaf().guid), str(play.pool.host.shelf[0].guid))
    assert play.begin().step == "resilver"
    assert play.until("pull").waits


def test_a_disk_the_machine_has_lost_is_not_taken_offline(play: Play):
    old = play.leaf()
    lifecycle.lose(play.pool, old, CANT_OPEN, aux=1)
    stage = play.begin()
    assert stage.step == "pull"
    assert any("nothing shows its pull" in text for text in stage.text)
    play.pool.host.drawer.append(old)
    play.hands.insert(NEW, OLD)
    assert play.look().step == "replace"


def test_the_word_of_the_operator_counts_where_nothing_shows_the_pull(play: Play):
    old = play.leaf()
    lifecycle.lose(play.pool, old, CANT_OPEN, aux=1)
    play.begin()
    assert play.answer("pulled").step == "insert"


def test_the_same_disk_put_back_is_put_online(play: Play):
    play.begin()
    play.do()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(2, OLD)
    stage = play.look()
    assert stage.step == "replace"
    assert stage.title.endswith("online again")
    play.do()
    play.until("scrub")
    assert play.checklist.same


def test_a_new_disk_that_is_too_small_is_refused(play: Play):
    play.begin()
    play.do()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(SMALL, OLD)
    stage = play.look()
    assert stage.step == "insert"
    assert any(text.startswith("Too small") for text in stage.text)
    play.hands.pull(OLD)
    assert "Insert the new disk into Slot 07" in play.look().title
    play.hands.insert(NEW, OLD)
    assert play.look().step == "replace"


def test_a_new_disk_in_another_bay_is_asked_about(play: Play):
    play.begin()
    play.do()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(NEW, EMPTY)
    assert EMPTY in play.look().title
    assert play.answer("elsewhere").step == "replace"


def test_a_machine_without_hot_plug_is_powered_off(play: Play, tmp_path):
    tmp_path.chmod(0o700)
    play.store = FileSwapStore(tmp_path)
    play.begin()
    play.do()
    play.look()
    play.store.close()
    play.hands.pull(OLD)
    play.hands.insert(NEW, OLD)
    again = Play(world=play.world, store=FileSwapStore(tmp_path), boot="second")
    again.elapsed = play.elapsed
    again.guide = Guide(again.store.read()[0], again.store)
    stage = again.look()
    assert stage.step == "replace"
    assert any("booted" in entry.text for entry in again.checklist.log)
    again.do()
    again.until("scrub")


def test_a_pull_that_the_machine_does_not_show_is_asked_about(play: Play):
    play.begin()
    play.do()
    stage = play.answer("pulled")
    assert stage.step == "insert"
    assert any("still shows" in text for text in stage.text)
    assert play.answer("same").title.endswith("online again")


def test_back_undoes_step_by_step(play: Play):
    play.begin()
    play.do()
    stage = play.back()
    assert stage.step == "offline"
    while not stage.back or not stage.back.closes:
        play.wait(20.0)
        stage = play.look()
    assert play.back().over
    assert play.checklist.state == "backed out"


def test_back_detaches_the_new_disk_while_it_is_filled(play: Play):
    play.hands.insert(NEW, EMPTY)
    play.begin()
    stage = play.do()
    assert stage.back is not None
    assert stage.back.plan is not None
    assert stage.back.plan.action == "detach"
    assert play.back().step == "replace"
    assert find(play.view().situation.pool, play.checklist.old.key).group is None


def partitioned(play: Play, bay: str, number: int, leaf: Leaf) -> None:
    """Make a leaf a partition of the disk in a bay."""
    disk = play.leaf(bay)
    leaf.path = f"/dev/disk/by-id/{disk.devid}-part{number}"
    leaf.name, leaf.devid = f"{disk.devid}-part{number}", disk.devid
    leaf.slot, leaf.device = disk.slot, f"{disk.device[:-1]}{number}"


def with_second_pool(play: Play, *bays: str) -> PoolState:
    """A second pool, a mirror of partitions on the disks in these bays."""
    make = Build(3, "fast", play.pool.start)
    leaves = make.leaves(len(bays), SSD_400G)
    second = make.pool([make.mirror(leaves, fill=0.01)], host=play.pool.host)
    for bay, leaf in zip(bays, leaves, strict=True):
        partitioned(play, bay, 2, leaf)
    second.t = play.pool.t
    play.pool.host.shelf = []
    partitioned(play, OLD, 1, play.leaf())
    play.world.pools = (play.pool, second)
    return second


def test_both_pools_on_one_disk_are_told_and_taken_offline(play: Play):
    second = with_second_pool(play, OLD, "Slot 08")
    choice = play.choice()
    assert [effect.pool for effect in choice.effects] == ["tank", "fast"]
    stage = play.begin(PULL_FIRST)
    assert stage.step == "offline"
    stage = play.do()
    assert (stage.step, stage.plan and stage.plan.pool) == ("offline", "fast")
    assert play.do().step == "pull"
    play.hands.pull(OLD)
    assert play.look().step == "insert"
    assert second.tops[0].lost() == 1
    play.hands.insert(NEW, OLD)
    stage = play.look()
    assert stage.plan is not None
    assert stage.plan.steps[0].argv[-1].endswith("-part1")
    play.do()
    play.until("scrub")


def test_a_disk_that_another_pool_cannot_do_without_is_not_pulled(play: Play):
    with_second_pool(play, OLD)
    choice = play.choice()
    assert choice.way is None
    assert "loses data of" in choice.refused


def test_offline_waits_while_another_device_of_the_vdev_is_missing(play: Play):
    play.begin()
    lifecycle.lose(play.pool, play.leaf("Slot 01"), FAULTED, aux=11)
    stage = play.look()
    assert stage.step == "offline"
    assert stage.plan is not None
    assert "is missing or being filled" in (stage.plan.refused or "")


def test_a_disk_that_leaves_before_its_turn_is_not_taken_for_the_pull(play: Play):
    play.begin()
    play.hands.pull(OLD)
    stage = play.look()
    assert stage.step == "pull"
    assert not stage.waits


def test_a_disk_of_no_pool_may_go_without_an_alarm(play: Play):
    play.hands.insert(SMALL, EMPTY)
    play.begin()
    play.do()
    play.hands.pull(EMPTY)
    stage = play.look()
    assert not stage.alarm
    assert any("holds no pool" in text for text in stage.text)


def test_a_pull_that_was_meant_is_not_waited_for(play: Play):
    play.begin()
    play.do()
    play.hands.pull("Slot 06")
    assert play.answer("meant").title.startswith(f"Pull {OLD}")


def test_a_pool_with_another_name_is_the_same_pool(play: Play):
    play.begin()
    play.do()
    play.pool.name = "bowl"
    stage = play.look()
    assert stage.step == "pull"
    assert play.checklist.pool == "bowl"
    play.hands.pull("Slot 06")
    assert play.look().alarm


def test_the_light_goes_on_before_the_pull_and_off_at_the_end(play: Play):
    play.lights = True
    play.begin()
    assert play.do().step == "light"
    stage = play.do()
    assert stage.step == "pull"
    assert f"The light of {OLD} is on." in stage.text
    assert len(play.led.lit) == 1
    assert stage.back is not None
    assert play.back().step == "light"
    assert not play.led.lit
    play.do()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(NEW, OLD)
    play.do()
    play.until("light-off")
    assert play.do().step == "scrub"
    assert not play.led.lit


def test_the_light_can_be_done_without(play: Play):
    play.lights = True
    play.begin()
    play.do()
    assert play.answer("no-light").step == "pull"


def test_what_is_left_undone_is_kept_and_what_was_closed_is_not_looked_at(play: Play):
    play.begin()
    assert play.guide is not None
    play.guide.close(play.now)
    assert play.look().over


def test_an_exported_pool_is_waited_for(play: Play):
    play.begin()
    assert play.guide is not None
    stage = play.guide.look(None, play.now)
    assert stage.title == "Import tank"


def test_the_disk_of_another_open_checklist_must_stay_until_that_says_to_pull_it(play: Play):
    other = Play(world=play.world, store=play.store)
    play.begin()
    other.begin(bay="Slot 06")
    play.do()
    play.hands.pull("Slot 06")
    assert "WRONG DISK: put Slot 06" in play.look().title


def test_the_disk_of_another_open_checklist_may_be_pulled(play: Play):
    other = Play(world=play.world, store=play.store)
    play.begin()
    other.begin(bay="Slot 06")
    other.do()
    play.hands.pull("Slot 06")
    stage = play.look()
    assert not stage.alarm
    assert stage.plan is not None
    assert "is missing or being filled" in (stage.plan.refused or "")


def test_the_old_disk_is_pulled_from_the_bay_it_was_moved_to(play: Play):
    play.begin()
    play.do()
    old, other = play.leaf(OLD), play.leaf("Slot 06")
    old.slot, other.slot = other.slot, old.slot
    stage = play.look()
    assert stage.title.startswith(f"Pull Slot 06 (serial {old.serial})")
    assert play.checklist.pulled is None, "it is still there"
    assert play.checklist.log[-1].text == f"serial {old.serial} is in Slot 06 now"


def test_a_healthy_disk_that_has_the_old_ones_alias_by_now_is_left_alone(play: Play):
    def alias(found):
        # An alias by place leads to whatever sits there; the disks have changed places.
        bays = {"Slot 06": "b07", "Slot 07": "b06"} if moved else {"Slot 06": "b06", OLD: "b07"}
        return tuple(
            replace(d, path=f"/dev/disk/by-vdev/{bays[d.bay]}", aliases=(*d.aliases, d.path))
            if d.bay in bays
            else d
            for d in found
        )

    moved = False
    play.devices = alias
    play.hands.insert(NEW, EMPTY)
    play.begin(REPLACE_FIRST)
    play.do()
    moved = True
    stage = play.until("pull")
    assert stage.plan is None
    assert "offline" not in play.steps


def test_a_spare_is_waited_for_before_zpool_marks_it(play: Play):
    play.pool.spares.append(fresh())
    play.begin(SPARE_FIRST)
    play.do()
    v = play.view()
    target = find(v.situation.pool, play.checklist.old.key)
    assert target is not None
    assert target.group is not None
    bare = [leaf._replace(resilvering=False, unfilled=None) for leaf in target.group.children]

    def without_marks(vdev):
        if vdev.kind == "spare" and vdev.children:
            return vdev._replace(children=tuple(bare))
        return vdev._replace(children=tuple(map(without_marks, vdev.children)))

    s = v.situation
    unmarked = replace(s, pool=replace(s.pool, root=without_marks(s.pool.root)))
    assert current(play.checklist, replace(v, situation=unmarked), play.now).step == "spare"
    silent = replace(unmarked, pool=replace(unmarked.pool, scans=()))
    at_once = current(play.checklist, replace(v, situation=silent), play.checklist.log[-1].t)
    assert at_once.step == "spare"


def test_a_new_disk_is_not_taken_for_the_old_one_while_its_serial_number_is_unknown(play: Play):
    def early(found):
        return tuple(replace(d, wwn="") for d in found)

    def late(found):
        path = play.checklist.old.whole
        return tuple(
            replace(d, path=path, serial="", wwn="eui.77777") if d.bay == OLD else d for d in found
        )

    play.devices = early
    play.begin()
    play.do()
    play.hands.pull(OLD)
    play.look()
    play.devices = late
    play.hands.insert(NEW, OLD)
    play.look()
    assert not play.checklist.same


def test_a_hot_spare_pulled_by_mistake_only_has_to_return(play: Play):
    spare = fresh()
    play.pool.spares.append(spare)
    play.begin(PULL_FIRST)
    play.do()
    play.hands.pull("Slot 12")
    assert play.look().alarm
    play.hands.insert(2, "Slot 12")
    assert not play.look().alarm


def test_what_is_on_a_new_disk_is_not_overwritten(play: Play):
    play.begin()
    play.do()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(NEW, OLD)
    used = Contents(("ext4",), "other")
    play.devices = lambda found: tuple(
        replace(d, contents=used) if d.bay == OLD else d for d in found
    )
    text = play.look().text
    assert any("Holds ext4" in line for line in text)
    assert any("label of a pool (other)" in line for line in text)


def test_a_new_disk_that_fails_its_own_test_is_refused(play: Play):
    play.begin()
    play.do()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(NEW, OLD)
    path = next(d.path for d in play.view().devices if d.bay == OLD)
    play.smart = {path: SmartCounts(passed=False)}
    assert any("SMART reports a failing disk" in line for line in play.look().text)
    play.smart = {path: SmartCounts(passed=True, pending=8)}
    assert any("not new" in line for line in play.look().warnings)


def test_a_disk_in_place_of_one_without_serial_is_told_by_its_label(play: Play):
    def nameless(found):
        return tuple(replace(d, serial="") if d.bay == OLD else d for d in found)

    play.devices = nameless
    play.begin()
    play.do()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(2, OLD)
    assert play.look().title.endswith("online again")


def test_another_operator_may_replace_meanwhile(play: Play):
    play.begin()
    play.do()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(NEW, OLD)
    commands.replace(play.pool, play.checklist.old.key, play.pool.host.shelf[0].path)
    assert play.look().step == "resilver"
    assert play.checklist.new is not None
    play.until("scrub")


def test_zed_may_replace_before_the_new_disk_was_seen(play: Play):
    play.begin()
    play.do()
    play.hands.pull(OLD)
    play.hands.insert(NEW, OLD)
    commands.replace(play.pool, play.checklist.old.key, play.pool.host.shelf[0].path)
    assert play.look().step == "resilver"
    play.until("scrub")
    assert any("begun elsewhere" in entry.text for entry in play.checklist.log)


def test_the_serial_of_a_new_disk_may_be_known_late(play: Play):
    play.begin()
    play.do()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(NEW, OLD)
    play.devices = lambda found: tuple(
        replace(d, serial="", wwn="") if d.bay == OLD else d for d in found
    )
    play.look()
    play.devices = lambda found: found
    play.look()
    assert play.checklist.new is not None
    assert play.checklist.new.serial


def named_by_bay(play: Play) -> None:
    """Name disks by their bay, as vdev_id.conf does: the next disk there has the same path."""
    for leaf in (*play.pool.leaves(), *play.pool.host.drawer):
        leaf.name = f"b{leaf.slot:02d}"
        leaf.path = f"/dev/disk/by-vdev/{leaf.name}-part1"


def test_a_disk_that_was_changed_before_anybody_asked_is_not_pulled_again(play: Play):
    named_by_bay(play)
    play.hands.pull(OLD)
    play.hands.insert(NEW, OLD)
    play.pool.host.shelf[0].path, play.pool.host.shelf[0].name = (
        "/dev/disk/by-vdev/b07-part1",
        "b07",
    )
    key = next(str(leaf.guid) for leaf in play.pool.leaves() if leaf.slot == 7)
    choice = choose(play.view(), key)
    assert choice is not None
    assert choice.gone
    assert choice.way is not None
    play.guide = started(choice, choice.way, play.view(), play.store, play.now)
    assert play.look().step == "replace"


def test_the_new_disk_may_have_the_path_of_the_old(play: Play):
    named_by_bay(play)
    play.begin()
    play.do()
    play.hands.pull(OLD)
    play.look()
    new = play.pool.host.drawer[NEW]
    new.path, new.name = "/dev/disk/by-vdev/b07-part1", "b07"
    play.hands.insert(NEW, OLD)
    stage = play.look()
    assert stage.step == "replace"
    assert not stage.title.endswith("online again")
