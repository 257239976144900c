"""The reasons for a pool's health."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.drawn import LOOK, text
from tests.ui.frames.making import disk, frame, group
from zconsole.diagnosis.bottleneck.finding import Suggestion, Verdict
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.health import Health
from zconsole.pool.model import MULTIHOST, Activity, BlockCounters, Event, Vdev
from zconsole.pool.redundancy import Redundancy
from zconsole.timeline.frame import SWAP, ActivityView
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.events import pane_lines
from zconsole.ui.panes.overview import overview_about
from zconsole.ui.panes.reasons import (
    all_reasons,
    as_called,
    called_names,
    resume_advice,
    wanted_action,
)
from zconsole.ui.panes.scan import scan_lines


@rows(("repaired", "left", "told"), [(True, 0, True), (False, 0, False), (True, 1, False)])
def test_an_old_disk_that_does_not_count_is_named_where_no_redundancy_is_left(repaired, left, told):
    """In a resilver the headline said NONE, but not why: the old disk was still attached."""
    old, new = disk("old", resilvering=repaired), disk("new", resilvering=True)
    top = group("raidz1-0", "raidz1", group("replacing-0", "replacing", old, new), disk("other"))
    made = frame(
        group("tank", "root", top),
        health=Health("ERRORS", "error", ("3 data errors: files are damaged",)),
        redundancy=(Redundancy("raidz1-0", left, ("other",)),),
        scans=frames.resilver().scans,
    )
    why = "old is repaired, too: until its replacement is filled, it doesn't count"
    assert (why in all_reasons(made, DisplayFormat(), 80)) == told


@rows(
    ("states", "replacing", "told"),
    [
        (("FAULTED", "ONLINE"), False, "change a (C)"),
        (("ONLINE", "REMOVED"), False, "reconnect or change b (C)"),
        (("FAULTED", "REMOVED"), False, "change the failed disks (C)"),
        (("ONLINE", "OFFLINE"), False, None),
        (("FAULTED", "ONLINE"), True, None),
    ],
)
def test_a_failed_disk_that_nobody_replaces_has_its_next_step_and_key(states, replacing, told):
    failed = [disk(name, state=state) for name, state in zip("ab", states, strict=True)]
    if replacing:
        failed[0] = group("replacing-0", "replacing", failed[0], disk("c"))
    root = group("tank", "root", group("raidz2-0", "raidz2", *failed, disk("d")))
    health = Health("DEGRADED", "warning", ("a FAULTED",))
    reasons = all_reasons(frame(root, health=health), DisplayFormat(), 80)
    assert reasons == ["a FAULTED", *([told] if told else [])]


@rows("size", [(60, 15), (80, 24), (120, 40)])
async def test_a_spare_that_stands_idle_is_told_with_the_key_that_uses_it(size):
    async with acting("failed-disk", size) as a:
        assert "bay05 FAULTED (too many errors) · use bay11 (A)" in a.screen
        why = "spare bay11 fits bay05 and is not used: zfs-zed is not running"
        assert (why in a.screen) == (size != (60, 15))
        assert "replace bay05" not in a.screen
        for row in ("bay05", "bay11"):
            await a.to(row)
            await a.press("enter")
            assert "trouble      spare bay11 fits bay05" in a.screen
            await a.press("enter")


@rows(
    ("size", "told"),
    [
        ((60, 15), "one cause   3 disks behind one expander since 11:06:…"),
        ((80, 24), "one cause   3 disks behind one expander since 11:06: suspect cable, …"),
        (
            (120, 40),
            "3 disks behind one expander since 11:06: suspect cable, power or expander, not the"
            " disks",
        ),
    ],
)
async def test_disks_with_one_cause_are_told_together_and_none_is_to_be_replaced(size, told):
    async with acting("loose-cable", size) as a:
        await a.pass_time(70.0, 5.0)
        assert told in a.screen
        assert "one cause" in a.screen
        assert "trouble" not in a.screen
        assert "eplace bay" not in a.screen
        assert wanted_action(a.app.view_state.frame) == ""


async def test_the_whole_pane_tells_of_each_disk_too():
    async with acting("loose-cable", (120, 40)) as a:
        await a.pass_time(70.0, 5.0)
        a.app.main_screen.action_show_pane("scan")
        await a.press("z")
        assert "one cause" in a.screen
        assert a.screen.count(": likely cable, port or power; disconnected") == 3


@rows(
    ("note", "told"),
    [
        ("wrong disk pulled: put b online again, then put a back  (C)", False),
        ("a: Pull the old disk  (C continues)", False),
        ("ab: Pull the old disk  (C continues)", True),
    ],
)
def test_a_disk_that_a_swap_speaks_of_has_one_order(note, told):
    """Below each other stood: put b online again, then put a back; reconnect or replace a."""
    disks = disk("a", state="REMOVED"), disk("b", state="OFFLINE"), disk("ab")
    root = group("tank", "root", group("raidz2-0", "raidz2", *disks))
    health = Health("DEGRADED", "warning", ("a REMOVED",))
    open_swap = ActivityView(Activity(SWAP, "unfinished:", note=note))
    reasons = all_reasons(frame(root, health=health, activities=(open_swap,)), DisplayFormat(), 80)
    assert reasons == ["a REMOVED", *(["reconnect or change a (C)"] if told else [])]


def test_disks_are_named_by_their_bays_and_the_key_is_told():
    base = frames.suspended()
    bays = iter(("Slot 04", "Slot 05"))
    rows = tuple(
        replace(row, vdev=row.vdev._replace(disk=LeafDisk(bay=next(bays))))
        if row.vdev.state == "REMOVED"
        else row
        for row in base.rows
    )
    said = resume_advice(replace(base, rows=rows), LOOK, 78)
    assert said == "reconnect Slots 04-05, then clear the pool (A)"


def test_what_is_said_of_a_disk_names_its_bay_first_then_its_serial_number():
    base, shown = frames.flaky(), "Slot 05 (serial ZC1A)"
    name, note = base.troubles[0].name, "restarted 22:29 after "
    bay = LeafDisk(bay="Slot 05", serial="ZC1A")
    rows = tuple(
        replace(row, vdev=row.vdev._replace(disk=bay)) if row.vdev.name == name else row
        for row in base.rows
    )
    events = (Event(frames.NOW, "errors", f"{name}: 1 new read error", "warning", name),)
    view = replace(base.scans[0], notes=(f"{note}{name} returned",))
    limit = Verdict("slow-disk", f"{name} is slow", sure=1.0, disk=name)
    advice = Suggestion(f"check {name}: errors, SMART, cable")
    limit = limit._replace(suggestion=advice)
    made = replace(base, rows=rows, events=events, scans=(view, *base.scans[1:]), limit=limit)
    for said in (
        *map(text, (scan_lines(made, LOOK, 160), scan_lines(made, LOOK, 80))),
        text(pane_lines(made, None, LOOK, 100)),
    ):
        assert shown in said
        assert name not in said
    whole = text(scan_lines(made, LOOK, 160))
    for told in (f"{note}{shown}", f"slowed by   {shown} is slow", f"check {shown}: errors"):
        assert told in whole
    assert f"new errors  {shown}: " in whole
    fault = base.troubles[0]
    words = (
        f"{name}: likely the disk itself; 43 read errors in 25m00s; disconnected (SMART: passed)"
    )
    brief = replace(made, troubles=(fault._replace(text=words),))
    assert "Slot 05: likely the disk itself; 43 read errors in 25m00s; …" in text(
        scan_lines(brief, LOOK, 80)
    ), "the serial number had its room"
    several = words.replace("the disk itself; 43 read", "cable, port or power; 3 read, 40 checksum")
    brief = replace(made, troubles=(fault._replace(text=several),))
    assert "Slot 05 (serial ZC1A): likely cable, port or power; 43 errors; …" in text(
        scan_lines(brief, LOOK, 80)
    ), "their number was left out"


def test_a_device_without_a_path_is_called_nothing_where_no_name_stands():
    base = frames.flaky()
    bay = LeafDisk(bay="Slot 05")
    rows = tuple(row._replace(vdev=row.vdev._replace(disk=bay, path=None)) for row in base.rows)
    text = "no device - none / at all: ..."
    assert as_called(text, called_names(replace(base, rows=rows))) == text


def test_the_health_names_bays_wherever_a_device_stands_in_it_also_in_the_overview():
    base = frames.flaky()
    name = base.troubles[0].name
    rows = tuple(
        replace(row, vdev=row.vdev._replace(disk=LeafDisk(bay="Slot 05")))
        if row.vdev.name == name
        else row
        for row in base.rows
    )
    health = Health("ATTENTION", "warning", (f"the rebuild of {name}, as x{name}: new errors",))
    made = replace(base, rows=rows, health=health)
    said = f"the rebuild of Slot 05, as x{name}: new errors"
    assert said in all_reasons(made, DisplayFormat(), 80)
    assert said in text(overview_about(made, LOOK, 120))


def test_a_name_that_tells_the_bay_stays():
    assert Vdev("bay05", "disk", disk=LeafDisk(bay="bay05", serial="Z")).called == "bay05"
    assert Vdev("sda", "disk", disk=LeafDisk(serial="Z")).called == "sda"


def test_partitions_keep_their_names_as_several_may_be_on_one_disk():
    disk = LeafDisk(bay="Slot 05", serial="Z")
    for name in ("ata-X-part3", "sda3", "nvme0n1p1", "/dev/sdb1"):
        assert Vdev(name, "disk", disk=disk).called == name
    for name in ("ata-X", "sda", "nvme0n1", "wwn-0x5000c500a1"):
        assert Vdev(name, "disk", disk=disk).called == "Slot 05 (serial Z)"


def test_of_many_disks_without_a_bay_two_are_named():
    base = frames.suspended()
    rows = tuple(
        row if row.vdev.children else replace(row, missing_since=frames.NOW) for row in base.rows
    )
    many = replace(base, rows=rows)
    assert " and 3 more, then clear the pool (A)" in resume_advice(many, LOOK, 100)
    assert resume_advice(many, LOOK, 60) == "reconnect 5 disks, then clear the pool (A)"


@rows("room", [100, 60, 30])
def test_a_pool_that_another_host_may_have_is_not_to_be_cleared(room):
    base = frames.suspended()
    pool = replace(base.seen, suspension=MULTIHOST)
    said = resume_advice(replace(base, sample=replace(base.sample, pool=pool)), LOOK, room)
    assert len(said) <= room
    assert "import" in said
    assert "then clear" not in said
    assert "reconnect" not in said


async def test_a_suspended_pool_says_which_disk_to_reconnect_and_what_to_press_then():
    disk = "Slot 04 (serial S5RSVHXM)"
    async with acting("suspended", size=(80, 24)) as a:
        await a.pass_time(60, 3)
        assert f"reconnect {disk}, then clear the pool (A)" in a.screen
        (row,) = (line for line in a.screen.splitlines() if "suspended the pool" in line)
        assert "Slot 04" in row
        await a.pass_time(90, 3)  # the disk is back, which a suspended pool can't show
        assert f"{disk} is back: clear the pool (A)" in a.screen
        assert "suspended the pool" not in a.screen


def test_what_the_machine_says_nothing_about_is_not_called_there():
    base = frames.suspended()
    rows = tuple(row for row in base.rows if row.vdev.state != "REMOVED")
    unknown = replace(base, rows=rows)
    assert resume_advice(unknown, LOOK, 78) == "once its disks are back, clear the pool (A)"


def test_disks_of_a_vdev_that_was_away_from_the_beginning_are_not_called_there():
    """A console that was started after the pool was suspended has not seen them leave."""
    base = frames.suspended()
    there = BlockCounters(("sda",), *[0] * 7)
    rows = tuple(
        replace(row, vdev=row.vdev._replace(block=there)) if row.vdev.state == "ONLINE"
        else replace(row, missing_since=None)
        for row in base.rows
    )  # fmt: skip
    seen = replace(base, rows=rows)
    assert resume_advice(seen, LOOK, 78) == "its disks are there: clear the pool (A)"
    (top,) = base.root.children
    other = Vdev("mirror-1", "mirror", state="UNAVAIL", children=top.children[:1])
    away = replace(seen, root=base.root._replace(children=(top, other)))
    assert resume_advice(away, LOOK, 78) == "once its disks are back, clear the pool (A)"
