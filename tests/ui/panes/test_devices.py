"""The device list on the screen: cursor, tint, opened details, keys when there is no list."""

from __future__ import annotations

import pytest

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.drawn import LOOK
from tests.ui.fakes import FakeFeed, view_state
from tests.ui.frames import making
from tests.ui.frames.making import disk, group
from tests.ui.panes.test_device_columns import at_bays
from zconsole.diagnosis.bottleneck.finding import Verdict
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import ErrorCounters
from zconsole.ui.panes.device_columns import Needs
from zconsole.ui.panes.devices import HOLD, DeviceMemory


def grounds(app):
    """Return the background of each line of the list on the screen."""
    devices = app.devices
    return [devices._at(y, 0)[1] for y in range(1, devices.size.height)]


def heading(screen):
    return next(line for line in screen().splitlines() if line.startswith(" NAME"))


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
async def test_a_detail_that_is_opened_is_on_the_screen(size):
    async with view_state(frames.many(), size=size) as (app, pilot, _):
        for key in ("j", "G"):
            await pilot.press(key, "enter")
            await pilot.pause()
            opened = app.devices.current.key
            own = [n for n, item in enumerate(app.devices._items) if item.key == opened]
            top, room = app.devices.scroll_offset.y, app.devices.size.height - 1
            assert own[0] == app.devices.cursor
            assert top <= own[0] < top + room
            assert own[-1] < top + room or own[0] == top
            assert len(own) > 3
            await pilot.press("enter")


async def test_what_the_feed_tells_later_of_a_detail_is_on_the_screen_too():
    async with view_state(frames.healthy(), size=(80, 24)) as (_, pilot, screen):
        await pilot.press("G", "enter")
        await pilot.pause()
        assert "WDC WD40EFRX" in screen()


async def test_the_cursor_is_seen_also_while_another_pane_is_in_focus():
    async with view_state(frames.resilver()) as (app, pilot, screen):
        await pilot.press("j", "j")
        assert grounds(app)[2] == "cursor"
        await pilot.press("tab")
        await pilot.pause()
        assert grounds(app)[2] == "rest"
        (line,) = [each for each in screen().splitlines() if "replacing-0" in each]
        assert line.startswith(" "), "no mark that looks as if keys acted here"


async def test_the_row_of_a_suspended_pool_says_so_as_the_header_does():
    """There, zpool prints the state of the vdevs: the header said SUSPENDED, the row DEGRADED."""
    async with view_state(frames.suspended()) as (_, __, screen):
        (row,) = [line for line in screen().splitlines() if line.startswith(" tank  ")]
        assert " x SUSPENDED " in row


async def test_keys_fold_rows_only_while_their_pane_is_in_focus():
    async with view_state(frames.resilver()) as (app, pilot, _):
        await pilot.press("g", "tab")
        await pilot.press("left", "space", "enter")
        await pilot.pause()
        assert app.devices.arrangement.folded == frozenset()
        assert app.devices.expanded == set()
        await pilot.press("shift+tab", "left")
        assert app.devices.arrangement.folded


async def test_the_pane_in_focus_has_a_badge():
    async with view_state(frames.resilver()) as (app, pilot, _):
        badge = app.devices._at(0, 0)[0]
        assert [s.text for s in badge if s.role == "focus"] == [" NAME "]
        await pilot.press("tab")
        assert "focus" not in {span.role for span in app.devices._at(0, 0)[0]}


async def test_no_key_acts_on_a_row_that_is_not_on_the_screen():
    async with view_state(frames.resilver()) as (app, pilot, _):
        await pilot.press("j", "j")
        assert app.devices.current is not None
        await pilot.press("tab", "z")
        await pilot.pause()
        assert not app.devices.display
        assert app.devices.current is None
        await pilot.press("enter", "space")
        assert not app.devices.expanded
        assert not app.devices.arrangement.folded
        await pilot.press("z")
        await pilot.pause()
        assert app.devices.current.row.vdev.name == "replacing-0"


async def test_the_row_of_the_device_that_limits_the_scan_is_tinted():
    async with view_state(frames.resilver()) as (app, pilot, _):
        assert grounds(app).index("tint") == 6
        await pilot.press(*"jjjjjj")
        assert "tint" not in grounds(app)
        assert grounds(app)[6] == "cursor"


async def test_columns_move_once_when_errors_come_and_not_again_when_they_are_cleared():
    calm = frames.many()
    row = calm.rows[9]
    bad = replace(row, vdev=replace(row.vdev, errors=ErrorCounters(0, 0, 7, 0)))
    feed = FakeFeed((calm,))
    async with view_state(feed=feed) as (app, pilot, screen):
        assert "CKSUM" not in heading(screen)
        for frame in (replace(calm, rows=(*calm.rows[:9], bad, *calm.rows[10:])), calm):
            feed.put(frame)
            await pilot.pause()
            app.paint()
            await pilot.pause()
            assert "READ WRITE CKSUM" in heading(screen)


async def test_no_column_moves_as_the_cursor_goes_down_a_long_list():
    async with view_state(frames.many()) as (_, pilot, screen):
        at = heading(screen).index("STATE")
        for _ in range(12):
            await pilot.press("j")
            assert heading(screen).index("STATE") == at


async def test_where_the_cursor_is_is_told_only_of_a_list_that_is_longer_than_the_screen():
    async with view_state(frames.healthy(), size=(80, 24)) as (app, pilot, screen):
        rows_of = len(app.devices._items)
        for taller in range(4 - rows_of, 4):
            app.devices.styles.height = rows_of + taller
            await pilot.pause()
            fits = rows_of <= app.devices.size.height - 1
            assert (f"/{rows_of}" in heading(screen)) == (not fits), taller


def low(state: str):
    """Return a pool whose last data disk is in this state."""
    made = frames.healthy()
    every = list(made.rows)
    index = max(i for i, row in enumerate(every) if not row.vdev.children)
    every[index] = replace(every[index], vdev=replace(every[index].vdev, state=state))
    return replace(made, rows=tuple(every)), every[index].vdev.name


async def test_a_device_that_has_failed_is_in_sight_when_the_console_opens():
    frame, name = low("FAULTED")
    async with view_state(frame, size=(60, 15)) as (app, pilot, screen):
        await pilot.pause()
        assert name in screen()
        assert app.devices.current.row.vdev.name == name
        await pilot.press("g")
        assert name not in screen()


async def test_nothing_jumps_when_a_device_fails_later():
    frame, name = low("FAULTED")
    feed = FakeFeed((frames.healthy(),))
    async with view_state(size=(60, 15), feed=feed) as (app, pilot, screen):
        feed.put(frame)
        await pilot.pause()
        await pilot.pause()
        assert app.devices.cursor == 0
        assert name not in screen()


NEW, OLD, SPARE = disk("new"), disk("old", state="OFFLINE"), disk("spare")
REPLACING = group("replacing-1", "replacing", OLD, NEW)
SECONDS = {
    "old": OLD,
    "new": NEW,
    "spare": SPARE,
    "replacing": REPLACING,
    "spared": group("spare-1", "spare", OLD, SPARE),
    "new, spared": group("spare-1", "spare", NEW, SPARE),
    "both": group("spare-1", "spare", REPLACING, SPARE),
}
"""Second members of a raidz."""


@rows(
    ("before", "at", "after", "then", "sort"),
    [
        ("replacing", "old", "new", "new", "tree"),
        ("replacing", "old", "new", "new", "errors"),
        ("replacing", "replacing-1", "new", "new", "tree"),
        ("replacing", "new", "old", "old", "tree"),
        ("replacing", "old", "old", "old", "tree"),
        ("spared", "old", "spare", "spare", "tree"),
        ("both", "old", "new", "new", "tree"),
        ("both", "old", "spared", "old", "tree"),
        ("both", "replacing-1", "new, spared", "new", "tree"),
        ("new, spared", "spare", "new", "new", "tree"),
    ],
)
async def test_the_cursor_goes_to_the_disk_that_took_the_place_of_the_one_at_it(
    before, at, after, then, sort
):
    """It slid to the next disk, a healthy one, which the next key would have been about."""

    def pool(second):
        top = group("raidz1-0", "raidz1", disk("a"), SECONDS[second], disk("b"), disk("c"))
        return making.frame(group("tank", "root", top, disk("spare", vclass="spare")))

    feed = FakeFeed((pool(before),))
    async with view_state(size=(80, 24), feed=feed) as (app, pilot, _):
        app.devices.rearrange(sort=sort)
        names = [item.row.vdev.name if item.row else "" for item in app.devices._items]
        app.devices.move(names.index(at) - app.devices.cursor)
        feed.put(pool(after))
        await pilot.pause()
        await pilot.pause()
        vdev = app.devices.current.row.vdev
        assert (vdev.name, vdev.vclass) == (then, "normal")


async def test_left_and_right_in_an_open_detail_go_through_its_time():
    def time(screen):
        lines = map(str.strip, screen.splitlines())
        return next(each for each in lines if each.startswith("last ") or each.endswith(" ago"))

    async with view_state(frames.resilver(), size=(100, 40)) as (app, pilot, screen):
        await pilot.press(*"jjjjjj", "enter", "j")
        await pilot.pause()
        now = time(screen())
        at = app.devices.current.key
        await pilot.press("left")
        await pilot.pause()
        assert time(screen()).split() == ["1m17s", "ago", "8s", "ago"]
        assert app.devices.current.key == at
        for on in ("right", "l"):
            await pilot.press("left", on, on)
            await pilot.pause()
            assert time(screen()) == now
        await pilot.press("left", "escape")
        await pilot.pause()
        assert time(screen()) == now
        await pilot.press("left", "escape", "escape", "left")
        await pilot.pause()
        assert app.devices.expanded == set()
        assert app.devices.current.key != at, "without a detail they fold and go up again"


async def test_a_time_gone_back_to_in_a_detail_stays_while_samples_come():
    feed = FakeFeed((frames.resilver(),))
    async with view_state(feed=feed, size=(100, 40)) as (app, pilot, _):
        await pilot.press(*"jjjjjj", "enter", "left")
        until = app.devices.until
        feed.put(frames.resilver())
        await pilot.pause()
        assert app.devices.until == until
        assert until is not None


@pytest.mark.parametrize(("width", "is_before"), [(60, True), (120, False)])
async def test_bays_without_a_column_of_their_own_stand_before_the_names(width, is_before):
    frame = at_bays(frames.many(), ["", "Slot 07"])
    name = [row.vdev.name for row in frame.rows if not row.vdev.children][1]
    async with view_state(frame, size=(width, 15)) as (_, _, screen):
        (row,) = [each for each in screen().splitlines() if "Slot 07" in each]
        assert (f"Slot 07 {name} " in row) == is_before
        assert name in row


async def test_at_sixty_columns_each_disk_of_a_shelf_has_its_bay_in_its_row():
    async with acting("swap", (60, 15)) as a:
        shown = [line for line in a.screen.splitlines() if "ONLINE" in line and "Slot" in line]
        assert "Slot 01 …" in shown[0]
        assert len(shown) > 3


FRAME = frames.resilver()
KEYS = {row.vdev.name: row.key for row in FRAME.rows}
SLOW, OTHER = FRAME.rows[6].vdev.name, FRAME.rows[5].vdev.name


def at(seconds, disk="", *, limited=True):
    """Return the resilver ``seconds`` later, limited by this disk, by none, or not at all."""
    limit = Verdict("slow-disk", "slow", disk=disk) if limited else None
    sample = replace(FRAME.sample, t=FRAME.t + seconds)
    return replace(FRAME, sample=sample, limit=limit)


@rows(
    ("taken", "culprit"),
    [
        ([at(0, SLOW)], SLOW),
        ([at(0, "sdq")], None),  # it is not in the list
        ([at(0, SLOW), at(2, ""), at(4, OTHER), at(6, SLOW), at(8, OTHER)], SLOW),
        ([at(0, SLOW), at(HOLD - 1, "")], SLOW),
        ([at(0, SLOW), at(HOLD, "")], None),
        ([at(0, SLOW), at(HOLD, OTHER)], OTHER),
        ([at(0, SLOW), at(1, limited=False)], None),
        ([at(0, SLOW), at(-60, "")], None),  # a recording played from before
    ],
)
def test_the_tint_is_on_the_disk_that_limits_and_moves_only_after_a_while(taken, culprit):
    memory = DeviceMemory()
    for each in taken:
        memory.take(each, LOOK)
    assert memory.culprit == KEYS.get(culprit)


def test_columns_that_were_needed_stay():
    memory = DeviceMemory()
    calm = frames.many()
    row = calm.rows[9]
    bad = replace(row, vdev=replace(row.vdev, note="was sdq", errors=ErrorCounters(1, 0, 0, 0)))
    memory.take(calm, LOOK)
    assert memory.has == Needs()
    memory.take(replace(calm, rows=(*calm.rows[:9], bad, *calm.rows[10:])), LOOK)
    memory.take(calm, LOOK)
    assert memory.has == Needs(errors=True, notes=True)
    in_bay = replace(row, vdev=replace(row.vdev, disk=LeafDisk(bay="Slot 07")))
    memory.take(replace(calm, rows=(*calm.rows[:9], in_bay, *calm.rows[10:])), LOOK)
    assert memory.has == Needs(errors=True, notes=True, bay=7), "what is found later, too"
