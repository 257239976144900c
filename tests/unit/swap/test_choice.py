"""Facts before a swap: the likely cause, and the possible ways."""

from __future__ import annotations

import re

import pytest

from tests.lock.plans.swaps import swaps
from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import (
    CHECKPOINT,
    FACTS,
    MODERN,
    at,
    disk,
    group,
    new_disk,
    pool,
    running,
    top,
)
from tests.unit.swap.playing import Play
from tests.unit.swap.views import DISKS, FULL, KEY, chosen, device, view
from zconsole.actions.target import find
from zconsole.diagnosis.device_errors.faults import (
    Deltas,
    DeviceFault,
    ProbeResults,
    SmartCounts,
    with_cause,
)
from zconsole.errors import UsageError
from zconsole.hardware.device import Contents, Device
from zconsole.pool.chassis import Enclosure, LeafDisk, Slot
from zconsole.pool.model import Activity, ErrorCounters, Scan, Vdev
from zconsole.sim import lifecycle
from zconsole.swap.choice import Refusal, SwapChoice, cause_of, choose
from zconsole.swap.disk import PULL_FIRST, REPLACE_FIRST, SPARE_FIRST, MachineView, device_named
from zconsole.swap.effects import Effect
from zconsole.swap.report import explained, time_words
from zconsole.swap.several import SwapOrder, started, together
from zconsole.swap.store import SwapStore
from zconsole.timeline.eta.estimate import Estimate


def modes(choice: SwapChoice) -> list[str]:
    return [way.mode for way in choice.ways if not way.refused]


SPARE = disk("sp", 9, "AVAIL")._replace(vclass="spare")
UNFILLED = [disk(f"d0{n}", 1000 + n, unfilled=False) for n in range(6)]


@rows(
    ("changes", "fields", "found"),
    [
        # A free disk replaces first, so that redundancy never drops; else a hot spare stands in.
        ((), {"disks": (*DISKS, new_disk())}, [REPLACE_FIRST, PULL_FIRST]),
        ((), {"spares": (SPARE,)}, [SPARE_FIRST, PULL_FIRST]),
        # A disk with something on it, or of another pool, is not free.
        ((), {"disks": (*DISKS, new_disk(contents=Contents(("ext4",))))}, [PULL_FIRST]),
        ((), {"disks": (*DISKS, new_disk(contents=Contents(zfs_pool="other")))}, [PULL_FIRST]),
        # A disk that is not read any more is pulled though another one is missing.
        (
            (disk("d00", 1000, "FAULTED"), disk("d01", 1001, "FAULTED")),
            {},
            [PULL_FIRST],
        ),
        # A resilver that fills nothing here, as the kernel says, hinders no pull.
        (UNFILLED, {"scans": (running("resilver"),)}, [PULL_FIRST]),
    ],
)
def test_only_ways_that_are_possible_are_offered_the_safest_first(changes, fields, found):
    assert modes(chosen(view(*changes, **fields))) == found


def test_a_shingled_disk_is_taken_only_where_no_other_is_free():
    smr = new_disk(path="/dev/disk/by-id/ata-A", node="/dev/sdy", aliases=("/dev/sdy",))
    smr = replace(smr, shingled="shingled (SMR) by WD's list")
    for free, taken in (((smr, new_disk()), new_disk()), ((smr,), smr)):
        way = chosen(view(disks=(*DISKS, *free))).way
        assert way is not None
        assert way.new is not None
        assert way.new.whole == taken.path


STANDS = group("spare", disk("d00", 1000, "DEGRADED"), disk("sp", 9))
FAULTED = disk("d01", 1001, "FAULTED")


@rows(
    ("changes", "scans", "why"),
    [
        ((disk("d00", 1000), FAULTED), (), "d01 of raidz2-0 is missing or being filled"),
        ((), (running("resilver"),), "a resilver runs, and may be filling another device"),
        # zpool marks a spare as resilvering only once the first bytes were written to it.
        ((STANDS, FAULTED), (running("resilver"),), ""),
    ],
)
def test_nothing_is_pulled_while_another_member_is_missing_or_may_be_filled(changes, scans, why):
    choice = chosen(view(*changes, scans=scans))
    assert modes(choice) == []
    assert why in choice.refused


FREE_BAY = (Enclosure("shelf", "SAS3x40", (*FULL[0].slots, Slot("Slot 02", 2))),)


@rows(
    ("enclosures", "leaf", "found", "why"),
    [
        (FREE_BAY, disk("d00", 1000), [REPLACE_FIRST, PULL_FIRST], "Insert it into Slot 02,"),
        ((), disk("d00", 1000), [REPLACE_FIRST, PULL_FIRST], "a free bay, if there is one"),
        (FULL, disk("d00", 1000), [PULL_FIRST], "no free bay is needed"),
        (FREE_BAY, disk("d00", 1000, "FAULTED"), [REPLACE_FIRST, PULL_FIRST], "safer, as nothing"),
        (FULL, disk("d00", 1000, "FAULTED"), [PULL_FIRST], "no longer reads this disk"),
    ],
)
def test_a_disk_is_pulled_only_after_its_replacement_where_a_bay_may_be_free(
    enclosures, leaf, found, why
):
    bays = tuple(replace(each, bay="Slot 01" if n == 0 else "") for n, each in enumerate(DISKS))
    choice = chosen(view(leaf, disks=bays, enclosures=enclosures))
    assert modes(choice) == found
    assert why in choice.way.why


def test_a_disk_that_is_out_is_replaced_in_its_own_bay_or_in_another():
    choice = chosen(view(disk("d00", 1000, "REMOVED"), disks=DISKS[1:], enclosures=FREE_BAY))
    assert modes(choice) == [PULL_FIRST, REPLACE_FIRST]


def test_a_single_disk_is_never_pulled_first():
    v = MachineView(at(pool(disk("d00", 1000)), replace(MODERN, devices=DISKS[:1])))
    choice = chosen(v)
    assert modes(choice) == [REPLACE_FIRST]
    assert "loses data" in choice.ways[-1].refused


@rows(
    ("pair", "mode", "why"),
    [
        (
            group("spare", disk("d00", 1000, "FAULTED"), disk("sp", 9)),
            PULL_FIRST,
            "sp stands in for it",
        ),
        (
            group("replacing", disk("d00", 1000), disk("new", 9, resilvering=True)),
            REPLACE_FIRST,
            "its replacement by new has begun already",
        ),
    ],
)
def test_a_spare_in_use_and_a_replace_under_way_are_adopted(pair, mode, why):
    choice = chosen(view(pair))
    assert modes(choice) == [mode]
    assert why in choice.way.why


@rows("key", ["9", "10"])
def test_no_newcomer_of_a_replace_is_led_to_the_pull(key):
    busy = group("replacing", disk("d00", 1000), disk("new", 9), disk("newer", 10))
    choice = chosen(view(busy), key)
    assert "takes the place of d00: name d00 to swap that one" in choice.refused
    assert f"zpool detach tank {key}" in choice.refusal.manual[0]


@rows("resilvering", [True, False])
def test_of_a_replace_whose_resilver_runs_only_the_time_left_is_told(resilvering):
    busy = group("replacing", disk("d00", 1000), disk("new", 9, resilvering=resilvering))
    seen, whole = view(busy), Estimate(20 * 3600.0, None, None, "as the last one")
    (way,) = chosen(seen).ways
    assert ("it runs already" in time_words(seen.situation, way, whole)) == resilvering
    left = "Time: 10h00m left of the resilver that runs"
    said = left if resilvering else "Time: one resilver, about 20h00m: as the last one"
    assert time_words(replace(seen.situation, left=10 * 3600.0), way, whole) == said


WAITS = disk("new", 9, unfilled=True, awaiting_resilver=True)


@rows(
    ("changes", "fields", "said"),
    [
        ((), {"disks": (*DISKS, new_disk())}, "one resilver, about"),
        ((), {"spares": (SPARE,)}, "two resilvers, about"),
        ((group("replacing", disk("d00", 1000), WAITS),), {}, "one resilver, about"),
    ],
)
def test_the_time_of_a_way_tells_how_long_its_disk_waits_for_the_running_resilver(
    changes, fields, said
):
    seen = view(*changes, scans=(running("resilver"),), **fields)
    seen = replace(seen, situation=replace(seen.situation, left=10 * 3600.0))
    way = chosen(seen).ways[0]
    told = time_words(seen.situation, way, Estimate(3600.0, None, None, "as the last one"))
    assert told.startswith(f"Time: after the running resilver (about 10h00m left), {said} 1h00m")


def test_disks_that_nothing_covers_once_it_is_out_must_stay():
    choice = chosen(view(disk("d00", 1000), disk("d01", 1001, "FAULTED")))
    assert [d.bay for d in choice.untouchable] == ["d02", "d03", "d04", "d05"]
    assert chosen(view()).untouchable == ()


def test_what_failed_says_why_it_is_thought_so():
    signs = ProbeResults(SmartCounts(pending=2), ("sdc: Medium Error",))
    fault = with_cause(DeviceFault(KEY, "d00", Deltas(read=4), 1.0), signs)
    v = replace(view(), faults=(fault,), smart={DISKS[0].path: SmartCounts(pending=3)})
    choice = chosen(v)
    assert choice.cause == "disk"
    assert choice.draft.why == (
        "d00 is ONLINE",
        # Counted as in the last line, though 2 when the fault was seen.
        "d00: likely the disk itself; 4 read errors in 1h00m (3 unreadable sectors; reads fail"
        " rather than return damaged data; the kernel reports bad sectors)",
        "sdc: Medium Error",
        "SMART: 3 pending",
    )


def test_a_disk_that_is_gone_is_found_by_what_zfs_noted_of_it():
    gone = disk("d00", 1000, "UNAVAIL")._replace(
        devid="ata-WDC_WD40_S-old-part1", phys_path="pci-0000:03:00.0-ata-3"
    )
    choice = chosen(view(gone, disks=DISKS[1:]))
    assert choice.draft.was_gone
    assert (choice.old.serial, choice.old.port) == ("S-old", "pci-0000:03:00.0-ata-3")


BAY = "/dev/disk/by-vdev/d00"


@rows(
    ("label", "devid", "gone"),
    [
        (None, "ata-WDC_S-old-part1", True),
        ("other", "ata-WDC_S-old-part1", True),
        (None, None, True),
        ("tank", None, False),
        (None, "ata-WDC_S-d00-part1", False),
    ],
)
def test_another_disk_in_the_bay_that_a_path_names_is_not_the_old_one(label, devid, gone):
    missing = disk("d00", 1000, "UNAVAIL")._replace(path=f"{BAY}-part1", devid=devid)
    there = device("d00", path=BAY, aliases=(f"{BAY}-part1",), contents=Contents(zfs_pool=label))
    choice = chosen(view(missing, disks=(there, *DISKS[1:])))
    assert choice.draft.was_gone is gone
    assert choice.old.bay == "d00"


def test_a_checklist_remembers_every_other_disk():
    v = view(disks=(*DISKS, new_disk()))
    choice = chosen(v)
    assert choice.way is not None
    c = started(choice, choice.way, SwapStore(None, memory={}), 5.0).checklist
    assert {d.bay for d in c.around if d.pool} == {f"d0{n}" for n in range(1, 6)}
    assert new_disk().path in {d.whole for d in c.around}


@rows("key", ["none", "1"])
def test_what_is_not_in_the_pool_is_no_choice(key: str):
    found = choose(MachineView(at(pool(top("mirror", 0, 2)), FACTS)), key)
    assert found is None


def test_a_path_that_a_healthy_disk_took_over_leads_to_no_disk_to_pull():
    # After a boot without its disk, zpool prints a leaf as "was /dev/sdb1" while sdb is another
    # disk.
    gone = disk("12345", 1000, "UNAVAIL", note="was /dev/sdb1", devid="ata-X_GONE-part1")
    gone = gone._replace(path="/dev/sdb1")
    healthy = disk("sdb", 1001)._replace(path="/dev/sdb1", devid="ata-X_HEALTHY-part1")
    sdb = Device(
        "/dev/disk/by-id/ata-X_HEALTHY",
        "/dev/sdb",
        ("/dev/sdb", "/dev/sdb1"),
        serial="HEALTHY",
        bay="Slot 03",
        port="pci-0000:00:17.0-ata-3",
        locate="/sys/led3",
        contents=Contents(zfs_pool="tank"),
    )
    choice = chosen(view(gone, healthy, disks=(sdb, new_disk())))
    assert choice.draft.was_gone
    assert (choice.old.bay, choice.old.serial, choice.old.light) == ("", "GONE", "")
    assert [effect.target.key for effect in choice.effects] == [KEY]


def test_a_new_disk_that_took_over_the_kernel_name_is_not_where_the_old_one_sits():
    old = disk("sdb", 1000, "REMOVED", devid="ata-X_GONE-part1", phys_path="pci-0000:00:17.0-ata-2")
    old = old._replace(path="/dev/sdb1", disk=LeafDisk(bay="Slot 09", serial="NEW", port="ata-9"))
    sdb = new_disk(
        path="/dev/disk/by-id/ata-NEW",
        node="/dev/sdb",
        aliases=("/dev/sdb", "/dev/sdb1"),
        serial="NEW",
        bay="Slot 09",
        port="pci-0000:00:17.0-ata-9",
        locate="/sys/led9",
    )
    found = chosen(view(old, disks=(*DISKS[1:], sdb))).old
    assert (found.bay, found.port) == ("", "pci-0000:00:17.0-ata-2")
    assert (found.serial, found.light) == ("GONE", "")


def test_both_units_of_one_disk_go_with_it():
    # Disks with two actuators show two units: one serial number, two World Wide Names.
    first = replace(DISKS[0], serial="TWO", wwn="naa.5000c5001", bay="Slot 05")
    second = replace(DISKS[1], serial="TWO", wwn="naa.5000c5002", bay="Slot 05")
    choice = chosen(view(disks=(first, second, *DISKS[2:])))
    assert [effect.target.name for effect in choice.effects] == ["d00", "d01"]
    assert choice.effects[1].left == 0
    assert choice.old.is_on(first)
    assert not choice.old.is_on(second)


@rows(
    ("devid", "serial"),
    [
        ("ata-WDC_WD40EFRX_WD-WCC4E1-part1", "WD-WCC4E1"),
        ("nvme-Samsung_SSD_980_PRO_1TB_S5GXNX0T1234_1-part1", "S5GXNX0T1234"),
        ("usb-WD_Elements_25A3_575831-0:0-part1", "575831"),
        ("scsi-35000c500a1b2c3d4-part1", ""),
    ],
)
def test_of_a_disk_that_is_gone_the_serial_number_is_what_its_label_says(devid, serial):
    lost = disk("d00", 1000, "REMOVED", devid=devid)
    assert chosen(view(lost, disks=DISKS[1:])).old.serial == serial


def suspended_play() -> Play:
    """Return a pool that lost one device too many, which its last sample shows as ONLINE."""
    play = Play()
    play.view()
    for bay in ("Slot 01", "Slot 02"):
        lifecycle.lose(play.pool, play.leaf(bay))
    play.view()
    lifecycle.lose(play.pool, play.leaf("Slot 03"))
    assert play.pool.suspended
    return play


@rows("bay", ["Slot 03", "Slot 05", "Slot 07"])
def test_no_swap_begins_while_the_pool_is_suspended_and_the_disks_that_are_out_are_named(bay):
    choice = suspended_play().choice(bay)
    assert choice.way is None
    assert choice.refused.startswith("not while the pool is suspended")
    assert choice.refusal.title.startswith("tank IS SUSPENDED: bring ")
    assert "Slot 03 (serial" in choice.refusal.manual[0]
    assert ": zpool clear tank" in choice.refusal.manual[1]
    assert [*explained(choice)] == ["Not guided"]


def test_a_disk_that_is_replaced_already_need_not_come_back_to_resume_the_pool():
    busy = group("replacing", disk("d00", 1000, "REMOVED"), disk("new", 9, resilvering=True))
    v = view(busy, kind="raidz1", disks=(*DISKS[2:], device("new")))
    v = replace(v, situation=replace(v.situation, suspended=True))
    choice = chosen(v)
    assert choice.refusal.title == "tank IS SUSPENDED: bring d01 back, then clear it"
    assert "Out: d01; d00, which new replaces already" in choice.refusal.why


def heads(choice: SwapChoice) -> list[str]:
    return [*explained(choice)]


def test_what_zpool_notes_of_a_disk_is_in_one_pair_of_parentheses():
    noted = disk("d00", 1000, "ONLINE")._replace(note="(resilvering)")
    assert chosen(view(noted)).draft.why[0] == "d00 is ONLINE (resilvering)"


def test_redundancy_that_is_gone_is_not_said_to_be_kept():
    lost = (disk("d00", 1000), FAULTED)
    v = view(*lost, kind="raidz1", disks=(*DISKS, new_disk()), spares=(SPARE,))
    ways = [way.why for way in chosen(v).ways if way.mode != PULL_FIRST]
    assert ["Redundancy stays as it is: none left" in why for why in ways] == [True, True]


def test_redundancy_hangs_on_an_old_disk_with_errors_only_while_it_is_not_repaired_itself():
    """A disk under repair is marked "(resilvering)" and lacks blocks: the console said NONE."""
    bad = disk("d00", 1000)._replace(errors=ErrorCounters(12, 0, 47))
    ways = chosen(view(bad, disks=(*DISKS, new_disk()))).ways
    (why,) = (way.why for way in ways if way.mode == REPLACE_FIRST)
    assert why.endswith(
        "Redundancy never drops, except for blocks that d00 (serial S-d00) can't read"
    )


@rows("left", [0, -1])
def test_what_a_failed_disk_no_longer_gives_is_not_lost_by_pulling_it(left: int):
    seen = view(disk("sda", 1000, "FAULTED"))
    target = seen.target(KEY)
    assert target is not None
    said = Effect(seen.situation, target, left).text
    assert said.startswith("nothing more: sda")
    assert "loses data" not in said


FREE = (device("n1"), device("n2"))


def with_errors(read: int = 0, cksum: int = 0, state: str = "ONLINE") -> Vdev:
    return disk("d00", 1000, state)._replace(errors=ErrorCounters(read, 0, cksum))


@rows(
    ("leaf", "smart", "cause"),
    [
        (with_errors(cksum=40), {}, "cable"),
        (with_errors(read=40), {}, "disk"),
        (with_errors(cksum=40), {DISKS[0].path: SmartCounts(pending=3)}, "disk"),
        (with_errors(cksum=40, state="FAULTED"), {}, "unclear"),
        (
            with_errors(cksum=40, state="FAULTED"),
            {DISKS[0].path: SmartCounts(reallocated=635, pending=79, crc=0)},
            "disk",
        ),
        (with_errors(), {}, "unclear"),
    ],
)
def test_errors_that_nobody_watched_are_judged_by_their_kind(leaf, smart, cause):
    v = replace(view(leaf), smart=smart)
    target = find(v.situation.pool, KEY)
    assert target is not None
    assert cause_of(v, target) == cause


def test_what_smart_counts_tells_the_cause_that_watching_left_unclear():
    fault = DeviceFault(KEY, "d00", Deltas(), 1.0, cause="unclear")
    failed = view(with_errors(state="FAULTED"))
    smart = {DISKS[0].path: SmartCounts(passed=True, reallocated=635, pending=79, crc=0)}
    for counts, cause in ((smart, "disk"), ({}, "unclear")):
        v = replace(failed, faults=(fault,), smart=counts)
        target = find(v.situation.pool, KEY)
        assert target is not None
        assert cause_of(v, target) == cause


def test_the_cable_is_to_be_checked_before_all_else_where_it_is_the_likely_cause():
    fault = DeviceFault(KEY, "d00", Deltas(cksum=9), 1.0, cause="cable")
    heading, lines = next(iter(explained(chosen(replace(view(), faults=(fault,)))).items()))
    assert heading == "First"
    assert lines == [
        "Likely cable, port or power: check the cable and port, then clear the errors"
        " (zpool clear tank d00); replace it if they come back",
    ]
    assert next(iter(explained(chosen(view(with_errors(read=40)))))) == "Swap d00 (serial S-d00)"


def test_replacing_all_at_once_is_advised_against_where_a_cable_may_be_bad():
    def order(**errors: int) -> SwapOrder:
        v = view(with_errors(**errors), disks=(*DISKS, *FREE))
        return together(v, [*filter(None, map(v.target, (KEY, "1001")))], {})

    assert order(cksum=40).doubtful
    assert order(cksum=40).text[0].startswith("not advised: d00: likely cable, port or power")
    assert not order(read=40).doubtful


# Swaps that are not guided, with the manual steps instead.


def leaf(path: str, name: str = "", **fields) -> Vdev:
    name = name or path.rpartition("/")[2]
    return replace(disk("x", 1000), **{"name": name, "path": path, **fields})


def refused(changed: Vdev, *devices: Device) -> Refusal | None:
    facts = replace(MODERN, devices=devices)
    found = choose(MachineView(at(pool(top("mirror", 0, 2, changed)), facts)), KEY)
    assert found.refusal is None or found.way is None
    return found.refusal


SDA = Device("/dev/disk/by-id/ata-A", "/dev/sda", ("/dev/disk/by-id/ata-A-part3", "/dev/sda3"))
PART = leaf("/dev/disk/by-id/ata-A-part3")


@rows(
    ("fields", "text"),
    [
        ({"mounted": ("/boot/efi",)}, "/boot/efi is mounted from it"),
        ({"swap": True}, "used as swap"),
        ({"holders": ("md0",)}, "md0 is built on it"),
        ({"contents": Contents(("vfat on sda1",))}, "it also holds vfat on sda1"),
    ],
)
def test_a_partition_beside_something_else_has_manual_steps(fields, text):
    found = refused(PART, replace(SDA, **fields))
    assert text in found.why
    assert found.commands[0] == "zpool offline tank 1000"
    assert found.commands[-1] == "zpool replace tank 1000 /dev/disk/by-id/NEW-part3"
    assert any("sgdisk --replicate" in line for line in found.manual)


def test_a_partition_alone_on_its_disk_is_guided():
    assert refused(PART, SDA) is None


@rows("path", ["/dev/mapper/luks-1", "/dev/dm-3", "/dev/md127"])
def test_a_device_made_of_others_has_manual_steps(path):
    found = refused(leaf(path))
    assert any("cryptsetup" in line for line in found.manual)
    tools = {command.split()[0] for command in found.commands}
    assert tools == {"lsblk", "zpool"}, "only what can be run as it stands is copied"


@rows(
    ("fields", "text"),
    [
        ({"kind": "file"}, "is a file"),
        ({"kind": "dspare"}, "nothing to pull"),
        ({"vclass": "cache"}, "no data of its own"),
    ],
)
def test_what_is_no_disk_of_data_is_refused(fields, text):
    found = refused(leaf("/srv/x", **fields))
    assert text in found.why


PAIR = group("replacing", disk("d00", 1000), disk("n0", 70))
RESILVERING = Scan("resilver", "running", start=900.0)
DISCARD, AGAIN = "zpool checkpoint -d tank", "zpool resilver tank"


def beside(activity: Activity, *scans: Scan, members=(PAIR,)) -> Refusal:
    seen = pool(top("mirror", 0, 2, *members), scans=scans, activities=(activity,))
    choice = choose(MachineView(at(seen, MODERN)), "1000")
    assert choice.refusal is not None
    assert choice.way is None
    return choice.refusal


@rows(
    ("refusal", "commands"),
    [
        (beside(CHECKPOINT), (DISCARD, AGAIN)),
        (beside(CHECKPOINT, RESILVERING), (DISCARD,)),
        (beside(CHECKPOINT, members=(disk("d00", 1000),)), (DISCARD,)),
        (beside(Activity("checkpoint", "running")), (AGAIN,)),
    ],
)
def test_no_swap_begins_beside_a_checkpoint_and_the_commands_are_named(refusal, commands):
    assert "checkpoint" in refusal.why
    assert "CHECKPOINT" in refusal.title
    assert refusal.commands == commands


# Disks are named by bay and serial first in every refusal, title and line of the report.

ZPOOLS = re.compile(r"(?<![/\w-])(?:ata|nvme|scsi)-\w+(?:-\w+)*")
"""Matches a name that only zpool has."""
BY_HAND = re.compile(r"`[^`]*`|\b(zpool|zconsole) [a-z]+( [\w/-]+){1,3}")
TELLING = ("where: ", "| name |", "type ")
"""Prefixes of lines that tell which disk a zpool name is."""
PLAYS = (
    "played/with lights",
    "played/a wrong disk",
    "played/disks that do not fit",
    "choices/failed-disk",
)


@rows("name", PLAYS)
def test_no_line_of_a_swap_calls_a_disk_as_zpool_does(name):
    lines = [re.sub(r"\$ .*?  #", "#", line).strip() for line in dict(swaps())[name](True)]
    said = [
        BY_HAND.sub("", line)
        for line in lines
        if not line.startswith(TELLING) and not re.fullmatch(r"\S+ in \S+ of \S+", line)
    ]
    assert said
    assert [line for line in said if ZPOOLS.search(line)] == []


def named(guid: int, bay: str, state: str = "ONLINE", **fields) -> Vdev:
    known = LeafDisk(bay=bay, serial=f"S{guid}")
    return disk(f"ata-WDC_{guid}", guid, state, disk=known, **fields)


OLD, NEW = named(1000, "bay03"), named(1900, "bay09")
NAMED_PAIR = group("replacing", OLD._replace(state="FAULTED"), NEW)


@rows(
    ("devices", "key", "said"),
    [
        ((OLD._replace(kind="file"),), KEY, "bay03 (serial S1000) is a file"),
        ((OLD._replace(vclass="cache"),), KEY, "bay03 (serial S1000) is a cache device"),
        ((NAMED_PAIR,), "1900", "bay09 (serial S1900) takes the place of bay03 (serial S1000)"),
    ],
)
def test_a_refusal_names_bay_and_serial_first(devices, key, said):
    found = chosen(view(*devices, disks=()), key)
    assert found.refusal.why.startswith(said)
    for line in (found.refusal.why, *found.refusal.manual):
        assert not ZPOOLS.search(BY_HAND.sub("", line))


def test_a_name_of_two_devices_says_which():
    twins = tuple(named(guid, f"bay0{guid - 1000}")._replace(name="ata-X") for guid in (1001, 1002))
    with pytest.raises(UsageError, match=r"bay01 \(serial S1001\), bay02 \(serial S1002\)"):
        device_named(view(*twins, disks=()), "ata-X")


def test_devices_whose_cable_may_be_bad_are_named_by_bay():
    noisy = named(1000, "bay03")
    noisy = noisy._replace(errors=noisy.errors._replace(cksum=40))
    seen = MachineView(at(pool(top("raidz2", 0, 6, noisy)), MODERN))
    target = seen.target(KEY)
    assert target is not None
    assert "bay03 (serial S1000)" in " ".join(together(seen, [target], {}).text)
