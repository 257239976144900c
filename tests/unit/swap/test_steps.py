"""Steps of a swap: the pull and the new disk, the light, and a checkpoint in the way."""

from __future__ import annotations

import shlex

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import disk, group
from tests.unit.swap.playing import EMPTY, NEW, OLD, SMALL, Play, partitioned, with_second_pool
from tests.unit.swap.views import chosen, view
from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.hardware.device import Contents, Device
from zconsole.pool.model import FAILED
from zconsole.sim import commands
from zconsole.sim.disk import FAULTED
from zconsole.sim.state import Checkpoint
from zconsole.swap.choice import choose
from zconsole.swap.disk import PULL_FIRST, REPLACE_FIRST, SPARE_FIRST
from zconsole.swap.several import started
from zconsole.swap.steps import spare_stage
from zconsole.swap.store import Guide, SwapStore

pytestmark = pytest.mark.slow


def test_a_new_disk_that_is_used_in_another_bay_is_refused_where_it_does_not_fit(play: Play):
    play.pulled()
    play.look()
    play.hands.insert(SMALL, EMPTY)
    assert EMPTY in play.look().title
    stage = play.answer("elsewhere")
    assert stage.title.endswith("does not fit")
    assert any(text.startswith("Too small") for text in stage.text)
    assert stage.text[-1] == "Insert another disk."
    assert play.checklist.new is None


@rows("state", ["ONLINE", "DEGRADED", *FAILED])
@rows("filling", [False, True])
def test_only_a_disk_that_can_be_read_is_said_to_be_read_while_a_spare_is_filled(state, filling):
    spare = disk("sp", 9, "AVAIL")._replace(vclass="spare")
    old = disk("d00", 1000, state)
    top = group("spare", old, disk("sp", 9, resilvering=True)) if filling else old
    seen = view(top, spares=(spare,))
    swap = replace(chosen(view(spares=(spare,))).draft, mode=SPARE_FIRST)
    stage = spare_stage(swap, seen, 0.0)
    assert stage is not None
    said = "Leave every disk where it is: the old disk is still read."
    if not filling:
        said = "Redundancy stays as it is while the disk is swapped; the spare returns afterwards."
    assert (stage.text == (said,)) == (state not in FAILED)


def test_a_machine_without_hot_plug_is_powered_off(play: Play, tmp_path):
    tmp_path.chmod(0o700)
    play.store = SwapStore(tmp_path)
    play.offline()
    play.look()
    play.store.close()
    play.hands.pull(OLD)
    play.hands.insert(NEW, OLD)
    again = Play(world=play.world, store=SwapStore(tmp_path), boot="second")
    again.elapsed = play.elapsed
    again.guide = Guide(again.store.read()[0], again.store)
    stage = again.look()
    assert stage.step == "replace"
    assert any("booted" in entry.text for entry in again.checklist.log)
    again.do()
    again.until("scrub")


@rows(
    "node, commands",
    [
        ("/dev/sdg", ["/sys/block/sdg/device/delete", "/sys/class/scsi_host/host*/scan"]),
        ("/dev/nvme0n1", ["/sys/block/nvme0n1/device/device/remove", "/sys/bus/pci/rescan"]),
        ("/dev/nvme11n2", ["/sys/block/nvme11n2/device/device/remove", "/sys/bus/pci/rescan"]),
        ("/dev/vdb", []),  # no other has a file to remove it
        ("/dev/mmcblk0", []),
        ("/dev/dm-5", []),
        ("", []),
    ],
)
def test_the_machine_is_made_to_look_again_as_its_disks_are_attached(node, commands):
    play = Play()
    play.shows(OLD, node=node)
    play.offline()
    stage = play.answer("pulled")
    assert stage.step == "insert"
    written = [text.split()[-1] for text in stage.text if text.startswith("echo")]
    assert written == commands
    assert any("power off and on" in text for text in stage.text)
    assert bool(commands) is any("these commands" in text for text in stage.text)


def test_a_light_is_not_said_to_be_on_once_its_time_is_over(play: Play):
    play.lights = True
    play.offline()
    assert play.look().step == "light"
    play.do()
    said = play.look()
    assert said.step == "pull"
    assert f"The light of {OLD} is on." in said.text
    play.wait(5 * 3600)
    assert f"The light of {OLD} went off after 4 hours: switch it off and on again." in (
        play.look().text
    )


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        ({1: Contents(("vfat",)), 2: Contents(zfs_pool="fast"), 3: Contents()}, ""),
        ({1: Contents(), 3: Contents(("ext4",))}, "holds ext4"),
        ({3: Contents(zfs_pool="fast")}, "has a label of pool fast"),
        ({1: Contents()}, "sgdisk --replicate"),
        ({}, "sgdisk --replicate"),
    ],
)
def test_a_new_disk_is_judged_by_the_partition_that_takes_the_place(play: Play, inside, why):
    """The contents of others, as left by a copied partition table and a first swap, stay."""
    partitioned(play, OLD, 3, play.leaf())
    play.inserted()
    names = tuple(name for each in inside.values() for name in each.names)
    parts = tuple(
        Device(path, aliases=(path,), size=1 << 50, number=path[-1], contents=contents)
        for path, contents in ((f"/dev/sdzp{n}", found) for n, found in inside.items())
    )
    links = ("/dev/sdz", *(part.path for part in parts))
    play.shows(OLD, node="/dev/sdz", parts=parts, aliases=links, contents=Contents(names, "fast"))
    stage = play.look()
    if why:
        assert stage.title.endswith("does not fit")
        assert why.lower() in " ".join(stage.text).lower()
        return
    assert (stage.step, stage.plan and stage.plan.refused) == ("replace", None)
    assert stage.plan.steps[0].argv[-1].endswith("p3")


def test_the_way_back_puts_both_pools_online(play: Play):
    """Whatever the name: commands in the checklist's log are quoted for a shell."""
    name = "it's my pool"
    second = with_second_pool(play, OLD, "Slot 08", name=name)
    play.begin(PULL_FIRST)
    play.do()
    play.do()
    said = [text for text in play.look().undone if "is still OFFLINE" in text]
    (other,) = [text for text in said if f"of {name}, on the same disk" in text]
    words = shlex.split(other.partition(": run ")[2])
    assert words[:3] == ["zpool", "online", name]
    stage = play.look()
    assert stage.back.text.endswith(f"of {name} online again")
    play.back()
    play.back()
    for _ in range(20):
        play.wait(20.0)
        stage = play.look()
    assert not second.tops[0].lost()
    assert stage.back.closes


def test_a_wrong_disk_is_brought_back_into_each_pool_on_it(play: Play):
    second = with_second_pool(play, "Slot 06", "Slot 08")
    partitioned(play, "Slot 06", 1, play.leaf("Slot 06"))
    play.begin(PULL_FIRST)
    play.do()
    play.hands.pull("Slot 06")
    stage = play.look()
    assert stage.title.startswith("WRONG DISK: put Slot 07 online again, then put Slot 06")
    assert {f"{pool} needs the data on Slot 06." for pool in ("tank", "fast")} <= {*stage.text}
    play.put_back()
    pools = [play.run_alarm() for _ in range(2)]
    assert sorted(pools) == ["fast", "tank"]
    assert play.refilled().title.startswith(f"Pull {OLD}")
    assert not second.tops[0].lost()


def test_a_pool_that_has_its_place_filled_needs_no_second_swap(play: Play):
    second = with_second_pool(play, OLD, "Slot 08")
    play.begin(PULL_FIRST)
    play.do()
    play.do()
    play.exchanged()
    old, good = second.tops[0].leaves()
    commands.detach(second, old.path)
    assert good.present
    assert not play.answer("no-scrub").then


def test_a_disk_that_leaves_before_its_turn_is_not_taken_for_the_pull(play: Play):
    play.begin()
    play.hands.pull(OLD)
    stage = play.look()
    assert stage.step == "pull"
    assert not stage.waits


def filling_first(lights: bool = True) -> Play:
    """Return a swap that inserted the new disk first, and fills it."""
    play = Play(lights=lights)
    play.begin(REPLACE_FIRST)
    play.hands.insert(NEW, EMPTY)
    play.do()
    return play


TOO_EARLY = f"{OLD} (serial RGYCXAL5) is out too early: put it back; until the new disk is filled,"


def test_an_old_disk_that_is_pulled_while_the_new_one_is_filled_is_to_be_put_back():
    play = filling_first()
    play.hands.pull(OLD)
    stage = play.look()
    assert stage.warnings == (
        f"{TOO_EARLY} 1 more device may fail in raidz2-0 without losing data.",
    )
    assert stage.text == ("Pull nothing until it ends.",)
    stage = play.put_back(OLD)
    assert stage.alarm
    assert stage.title.startswith(f"Put {OLD} (serial RGYCXAL5) online again")
    stage = play.do()
    assert (stage.step, stage.warnings) == ("resilver", ())
    assert "Leave the old disk plugged in" in stage.text[0]
    assert play.until("light").title == f"Switch on the light of {OLD}"
    play.do()
    play.hands.pull(OLD)
    assert play.look().step == "light-off"


def test_an_old_disk_whose_bay_has_another_disk_by_then_is_still_to_be_put_back():
    play = filling_first()
    play.hands.pull(OLD)
    play.look()
    play.hands.insert(0, OLD)
    assert play.look().warnings == (
        f"{TOO_EARLY} 1 more device may fail in raidz2-0 without losing data.",
    )
    play.put_back(OLD, into="Slot 12")
    assert play.do().warnings == ()
    assert play.until("scrub").step == "scrub"


def test_an_old_disk_that_is_out_before_the_new_one_is_filled_is_not_pulled_again():
    play = filling_first()
    play.hands.pull(OLD)
    assert play.until("scrub").step == "scrub"
    assert not {"light", "pull"} & {*play.steps}
    told = [entry.text for entry in play.checklist.log if entry.step == "pull"]
    assert told == ["the old disk left the machine before the new one was filled"]


def test_an_old_disk_that_is_out_before_the_new_one_is_in_is_missed_at_once(play: Play):
    play.begin(REPLACE_FIRST)
    play.hands.pull(OLD)
    assert play.look().warnings == (
        f"{TOO_EARLY} 1 more device may fail in raidz2-0 without losing data.",
    )
    play.hands.insert(NEW, EMPTY)
    assert TOO_EARLY in play.look().warnings[0]
    (left,) = play.look().undone
    assert left.startswith(f"{OLD} (serial RGYCXAL5) is still out: put it back, then run zpool")
    play.put_back(OLD)
    assert play.do().step == "replace"
    assert not play.look().warnings


def test_an_old_disk_that_zfs_gave_up_may_leave_early():
    play = filling_first()
    play.hands.pull(OLD)
    play.leaf().state = FAULTED
    assert play.look().warnings == ()
    assert not play.put_back(OLD).alarm


def test_the_old_disk_is_pulled_from_the_bay_it_was_moved_to(play: Play):
    play.offline()
    old, other = play.leaf(OLD), play.leaf("Slot 06")
    old.slot, other.slot = other.slot, old.slot
    stage = play.look()
    assert stage.title.startswith(f"Pull Slot 06 (serial {old.serial})")
    assert play.checklist.pulled is None, "it is still there"
    assert f"serial {old.serial} is in Slot 06 now" in [e.text for e in play.checklist.log]


def test_a_healthy_disk_that_has_the_old_ones_alias_by_now_is_left_alone(play: Play):
    def alias(found):
        # An alias by place leads to whichever disk is there; the disks have been exchanged.
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


def test_a_new_disk_is_not_taken_for_the_old_one_while_its_serial_number_is_unknown(play: Play):
    def early(found):
        return tuple(replace(d, wwn="") for d in found)

    def late(found):
        path = play.checklist.old.whole
        return tuple(
            replace(d, path=path, serial="", wwn="eui.77777") if d.bay == OLD else d for d in found
        )

    play.devices = early
    play.pulled()
    play.look()
    play.devices = late
    play.hands.insert(NEW, OLD)
    play.look()
    assert not play.checklist.same


def test_a_disk_that_only_emulates_small_sectors_fits_with_a_warning(play: Play):
    play.pool.tops[0].ashift = 9
    play.inserted()
    stage = play.look()
    assert stage.step == "replace"
    assert any("4096-byte sectors under ashift 9" in line for line in stage.warnings)


def test_a_new_disk_that_fails_its_own_test_is_refused(play: Play):
    play.inserted()
    path = next(d.path for d in play.view().devices if d.bay == OLD)
    play.smart = {path: SmartCounts(passed=False)}
    assert any("SMART reports a failing disk" in line for line in play.look().text)
    play.smart = {path: SmartCounts(passed=True, pending=8)}
    assert any("not new" in line for line in play.look().warnings)


def test_a_disk_in_place_of_one_without_serial_is_told_by_its_label(play: Play):
    def nameless(found):
        return tuple(replace(d, serial="") if d.bay == OLD else d for d in found)

    play.devices = nameless
    play.inserted(2)
    assert play.look().title.endswith("online again")


def test_a_new_disk_is_used_once_udev_has_named_it(play: Play):
    play.inserted()
    play.shows(OLD, path="/dev/sdz", aliases=("/dev/sdz",), unnamed=True)
    stage = play.look()
    assert stage.step == "insert"
    assert stage.waits == f"udev to name the disk in {OLD}"
    play.devices = lambda found: found
    stage = play.look()
    assert stage.plan.steps[0].argv[-1].startswith("/dev/disk/by-id/")


def test_the_serial_of_a_new_disk_may_be_known_late(play: Play):
    play.inserted()
    play.shows(OLD, serial="", wwn="")
    play.look()
    play.devices = lambda found: found
    play.look()
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
    assert choice.draft.was_gone
    assert choice.way is not None
    play.guide = started(choice, choice.way, play.store, play.now)
    assert play.look().step == "replace"


def test_the_new_disk_may_have_the_path_of_the_old(play: Play):
    named_by_bay(play)
    play.pulled()
    play.look()
    new = play.pool.host.drawer[NEW]
    new.path, new.name = "/dev/disk/by-vdev/b07-part1", "b07"
    play.hands.insert(NEW, OLD)
    stage = play.look()
    assert stage.step == "replace"
    assert not stage.title.endswith("online again")


def test_a_disk_that_fails_more_and_more_is_in_the_report_once(play: Play):
    play.inserted()
    path = next(d.path for d in play.view().devices if d.bay == OLD)
    for pending in (8, 9):
        play.smart = {path: SmartCounts(passed=False, pending=pending)}
        play.look()
    (said,) = [e.text for e in play.checklist.log if "does not fit" in e.text]
    assert "SMART reports a failing disk" in said


DISCARD, AGAIN = "zpool checkpoint -d tank", "zpool resilver tank"


def blocked() -> Play:
    """Return a swap whose resilver ended while there was a checkpoint."""
    play = Play()
    play.inserted()
    assert play.do().step == "resilver"
    play.pool.checkpoint = Checkpoint(play.now, 1e9)
    while not play.look().alarm:
        play.wait(60.0)
    return play


def command(play: Play) -> str:
    """Return the command of the current step."""
    plan = play.look().plan
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
    play.store = SwapStore(None, memory={})
    play.begin()
    play.wait(60.0)
    assert command(play) == AGAIN
