"""What the console draws, and when, with a feed given by the test."""

from __future__ import annotations

import pytest

from tests.records import replace
from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.fakes import Clock, FakeFeed, console, screen_text, view_state
from zconsole.errors import ExitCode, NotFoundError
from zconsole.timeline.alerts.rules import Alert
from zconsole.timeline.feed import Update
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.replay import Playback


async def test_the_age_ticks_while_no_sample_comes():
    clock = Clock()
    async with view_state(frames.healthy(), clock=clock) as (app, pilot, screen):
        assert "age <2s" in screen()
        clock.now += 12
        app._tick()
        await pilot.pause()
        assert "age 12s" in screen()


async def test_a_feed_that_cannot_begin_ends_the_console_with_its_reason():
    class Broken(FakeFeed):
        async def next(self):
            raise NotFoundError("no pool nope")

    async with view_state(feed=Broken()) as (app, _, _):
        pass
    assert app.return_code == ExitCode.NOT_FOUND
    assert str(app.failure) == "no pool nope"


async def test_only_the_lines_that_changed_are_marked():
    feed = FakeFeed((frames.resilver(),))
    async with view_state(feed=feed) as (app, pilot, read):
        await pilot.pause()
        read()  # reading draws it
        marked = {}
        for view in app.query("LinesView"):
            view._set_dirty = lambda *regions, view=view: marked.update({view.id: len(regions)})
        feed.put(frames.resilver())
        await pilot.pause()
        assert marked == {}
        base = frames.resilver()
        row = replace(base.rows[-1], rates=base.rows[-1].rates._replace(busy=0.99))
        feed.put(replace(base, rows=(*base.rows[:-1], row)))
        await pilot.pause()
        assert marked == {"devices": 1}


async def test_nothing_is_painted_while_the_terminal_is_behind_and_keys_still_work():
    feed = FakeFeed((frames.resilver(),))
    ready = []
    app = console(feed)
    app._writable = lambda: bool(ready)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "waiting for the first sample" in screen_text(app)
        ready.append(True)
        app._tick()
        await pilot.pause()
        assert "tank" in screen_text(app)
        ready.clear()
        await pilot.press("q")
    assert app.return_code == ExitCode.OK


async def test_frames_are_painted_once_a_second_at_most():
    clock = Clock()
    feed = FakeFeed((frames.resilver(),), interval=1.0)
    async with view_state(feed=feed, clock=clock) as (app, pilot, screen):
        assert "tank" in screen()
        painted = []
        app.main_screen.paint = painted.append
        for _ in range(5):
            clock.now += 0.01
            feed.put(frames.resilver())
            await pilot.pause()
        assert painted == []
        clock.now += 1.0
        feed.put(frames.healthy())
        await pilot.pause()
        assert len(painted) == 1


async def test_a_fast_replay_is_painted_ten_times_a_second_at_most():
    clock, feed = Clock(), FakeFeed((frames.resilver(),))
    feed.playback = Playback(300.0)
    async with view_state(feed=feed, clock=clock) as (app, pilot, _):
        painted = []
        app.main_screen.paint = painted.append
        for _ in range(30):
            clock.now += 0.01
            feed.put(frames.resilver())
            await pilot.pause()
        assert 1 <= len(painted) <= 4


async def test_messages_and_bells_wait_for_a_terminal_that_takes_no_output():
    alert = Alert("scan-end", "tank", 0.0, "scrub finished", "info")
    feed, ready = FakeFeed((frames.resilver(),)), [True]
    app, drawn, rung = console(feed), [], []
    app._writable = lambda: bool(ready)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.messages_signal.subscribe(app, drawn.append)
        app._driver.write = rung.append
        ready.clear()
        feed.queue.put_nowait(Update((frames.resilver(),), Capabilities("demo"), (alert,), "\a"))
        await pilot.pause()
        assert (drawn, rung) == ([], [])
        ready.append(True)
        app._tick()
        await pilot.pause()
        assert drawn
        assert "scrub finished" in screen_text(app)


async def test_without_color_no_cell_has_one(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    app = console(FakeFeed((frames.suspended(),)), ansi_color=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("j")
        for strip in app.screen._compositor.render_strips():
            for segment in strip:
                if segment.style is not None:
                    for color in (segment.style.color, segment.style.bgcolor):
                        assert color is None or color.is_default
        assert "x REMOVED" in screen_text(app)


async def test_outside_text_never_reaches_the_terminal_raw():
    async with view_state(frames.odd_names(), size=(120, 40)) as (_, pilot, screen):
        await pilot.press("j", "j", "enter")
        await pilot.pause()
        said = screen()
        assert not any((ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 for c in said)
        assert "[bold]no[/bold]" in said


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
async def test_the_list_of_devices_marks_that_it_goes_on(size):
    async with view_state(frames.many(200), size=size) as (_, pilot, screen):
        (heading,) = [line for line in screen().splitlines() if line.startswith(" NAME")]
        assert "↓" in heading
        assert "↑" not in heading
        await pilot.press("G")
        (heading,) = [line for line in screen().splitlines() if line.startswith(" NAME")]
        assert "↑" in heading
        assert "↓" not in heading


async def test_the_balance_marks_that_a_vdev_is_out_of_sight():
    async with acting("thousand", (80, 24)) as a:
        (title,) = [line for line in a.screen.splitlines() if "BALANCE" in line]
        assert "raidz2-2 " not in a.screen.split("BALANCE")[1]
        assert " ↓ " in title


async def test_b_goes_from_the_blamed_disk_to_the_failed_and_the_erring_ones_and_around():
    async with acting("resilver") as a:
        await a.pass_time(40, 40)
        devices, seen = a.app.devices, []
        limit = a.app.view_state.frame.limit
        await a.press("down", "space")  # its vdev is folded, yet the suspect is shown
        for _ in range(3):
            await a.press("b")
            seen.append(devices.current.row.vdev.name)
            assert f" {seen[-1]} " in a.screen
        assert seen == [limit.disk, "bay03", limit.disk]


async def test_b_finds_a_failed_and_an_erring_disk_also_where_the_filter_hides_them():
    async with acting("flaky") as a:
        await a.pass_time(3, 3)
        wanted = [
            row.vdev.name
            for row in a.app.view_state.frame.rows
            if not row.vdev.children and (row.gone or row.vdev.errors.total)
        ]
        a.app.devices.rearrange(filter="Slot 01")
        await a.press("b")
        assert a.app.devices.current.row.vdev.name == wanted[0]


async def test_b_finds_a_disk_that_is_marked_as_slow_where_no_scan_runs():
    frame = frames.healthy()
    slow = next(row for row in frame.rows if row.vdev.name == "sdd")
    rows = (r._replace(slow_sibling="61ms, siblings 8ms") if r is slow else r for r in frame.rows)
    async with view_state(replace(frame, rows=tuple(rows))) as (app, pilot, _):
        await pilot.press("b")
        assert app.devices.current.row.vdev.name == "sdd"


async def test_b_goes_first_to_the_disk_that_a_suspended_pool_waits_for():
    frame = frames.deserted()
    (wanted,) = frame.missing_devices
    async with view_state(frame) as (app, pilot, _):
        await pilot.press("b")
        assert app.devices.current.key == wanted.key
        await pilot.press("b")
        assert app.devices.current.key != wanted.key


async def test_b_says_so_where_no_disk_is_in_trouble():
    async with view_state(frames.healthy(), notifications=True) as (app, pilot, screen):
        await pilot.press("down", "b")
        assert "no device is slow" in screen()
        assert app.devices.cursor == 1


async def test_esc_gives_the_focus_back_to_the_devices():
    async with view_state(frames.resilver()) as (app, pilot, _):
        await pilot.press("tab")
        assert app.focused.id == "scan"
        await pilot.press("escape")
        assert app.focused.id == "devices"


@pytest.mark.parametrize("pane", ["scan", "devices", "balance", "events"])
async def test_a_pane_that_is_shown_by_its_key_has_the_focus(pane):
    """After 4, Enter and z were those of another pane than the events just shown."""
    async with view_state(frames.resilver(), size=(80, 30)) as (app, pilot, _):
        key = str(["scan", "devices", "balance", "events"].index(pane) + 1)
        await pilot.press(key)
        assert not app.main_screen.panes[pane].display
        assert app.focused is not app.main_screen.panes[pane]
        await pilot.press(key)
        assert app.focused.id == pane


async def test_a_pane_without_room_does_not_take_the_focus():
    async with view_state(frames.resilver(), size=(60, 15)) as (app, pilot, _):
        await pilot.press("4", "4", "4")
        assert app.focused.display
