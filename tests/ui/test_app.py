"""Keys and what the console shows, with a feed given by the test."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from textual import events

from tests.records import replace
from tests.ui import frames
from tests.ui.fakes import FakeFeed, console, until, view_state
from zconsole.errors import ExitCode
from zconsole.pool.model import IoCounters, IoRates, SampleFailure
from zconsole.system.patient import NotAskedError
from zconsole.timeline.alerts.rules import Alert, AlertRules
from zconsole.timeline.feed import Update
from zconsole.timeline.rates import SCAN_METRICS, RateSeries
from zconsole.ui.dialogs.screens import TextScreen
from zconsole.ui.keys import SHIPPED
from zconsole.ui.messages import PAGE
from zconsole.ui.panes import devices
from zconsole.ui.panes.device_columns import row_line
from zconsole.ui.panes.devices import Arrangement
from zconsole.ui.themed_app import begin
from zconsole.zfs.sources.base import Capabilities


def cursor_name(app):
    item = app.devices.current
    return item.row.vdev.name if item.row else item.title


async def test_it_says_that_it_waits_or_that_no_pool_is_imported_until_a_frame_comes():
    feed = FakeFeed()
    async with view_state(feed=feed) as (app, pilot, screen):
        assert "waiting for the first sample" in screen()
        feed.put()
        await pilot.pause()
        assert "no pools are imported" in screen()
        feed.put(frames.resilver())
        await pilot.pause()
        assert " DEGRADED  tank" in screen()
        assert "no pools" not in screen()
        assert list(app.messages) == []


async def test_escape_never_quits_q_quits_with_0_and_a_timer_may_outlive_the_screens():
    async with view_state(frames.healthy()) as (app, pilot, screen):
        await pilot.press("escape", "escape", "escape")
        assert app.is_running
        assert "OK  backup" in screen()
        await pilot.press("q")
    assert app.return_code == ExitCode.OK
    assert app.screen_stack == []
    app._clock.now += 2
    app._tick()
    app.paint()


async def test_work_for_which_no_thread_can_be_started_is_not_done_and_the_console_goes_on():
    async def refused(*_):
        raise NotAskedError("can't start new thread")

    async with view_state(frames.healthy()) as (app, pilot, screen):
        begin(app, refused, group="facts")
        await pilot.pause()
        assert app.is_running
        assert "can't start new thread" in screen()


async def test_the_header_is_drawn_by_itself_only_where_no_round_came(monkeypatch):
    async with view_state(frames.healthy()) as (app, _, _):
        drawn = []
        monkeypatch.setattr(app.main_screen, "paint_header", drawn.append)
        app._clock.now += 0.9
        app._tick()
        assert drawn == []
        app._clock.now += 0.1
        app._tick()
        assert len(drawn) == 1


async def test_a_pool_at_rest_is_not_drawn_at_every_sample(monkeypatch):
    """Painting took a quarter of an idle console's CPU time."""
    feed, drawn = FakeFeed(), []
    still = frames.healthy()
    async with view_state(feed=feed) as (app, pilot, _):
        paint = app.main_screen.paint
        monkeypatch.setattr(
            app.main_screen, "paint", lambda status: (drawn.append(status.now), paint(status))
        )

        async def _draws(frame):
            drawn.clear()
            app._clock.now += 1
            feed.put(frame)
            await pilot.pause()
            return len(drawn)

        def _at(seconds, **changed):
            sample = replace(still.sample, t=still.t + seconds)
            return replace(still, sample=sample, **changed)

        assert [await _draws(_at(n)) for n in range(12)] == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]
        first, *others = still.rows

        def _with(row):
            return (row, *others)

        assert await _draws(_at(12, rows=_with(first._replace(rates=IoRates(read=5e6)))))
        assert await _draws(_at(13))
        assert not await _draws(_at(14))
        counted = first.vdev._replace(io=IoCounters(7.0, 1, 2, 3, 4))
        assert not await _draws(_at(15, rows=_with(first._replace(vdev=counted))))
        failed = first._replace(vdev=first.vdev._replace(state="DEGRADED"))
        assert await _draws(_at(16, rows=_with(failed)))
        assert await _draws(_at(17, rows=tuple(others)))
        trouble = SampleFailure(still.pool, still.t, 0.0, "no answer")
        assert await _draws(_at(18, failure=trouble))
        assert await _draws(_at(18, failure=trouble))


async def test_an_age_that_was_drawn_goes_with_the_next_sample_of_a_pool_at_rest():
    feed, still = FakeFeed(), frames.healthy()
    async with view_state(feed=feed) as (app, pilot, screen):
        for _ in range(2):
            feed.put(still)
            await pilot.pause()
        app._clock.now += 7
        app._tick()
        await pilot.pause()
        assert "age 7s" in screen()
        feed.put(still)
        await pilot.pause()
        assert "age <2s" in screen()


async def test_a_row_is_worked_out_once_for_each_frame(monkeypatch):
    asked = []

    def _row_line(item, panel):
        asked.append((item.key, panel.frame.t))
        return row_line(item, panel)

    monkeypatch.setattr(devices, "row_line", _row_line)
    feed = FakeFeed()
    async with view_state(feed=feed) as (_, pilot, _):
        for made in (frames.healthy(), frames.resilver()):
            feed.put(made)
            await pilot.pause()
    assert asked
    assert len(asked) == len(set(asked))


async def test_a_timer_may_outlive_the_main_screen():
    async with view_state(frames.healthy()) as (app, _, _):
        await app.main_screen.query("*").remove()
        app._clock.now += 2
        app._tick()
        app.paint()
        assert app.is_running


async def test_help_lists_every_key_is_wrapped_where_it_is_narrow_and_q_closes_it():
    async with view_state(frames.healthy(), size=(100, 90)) as (app, pilot, screen):
        await pilot.press("question_mark")
        said = screen()
        for key in SHIPPED.looks:
            if key.action != "act('log')":  # no action is possible here, so there is no log
                assert key.text in said
        await pilot.resize_terminal(60, 90)
        await until(pilot, lambda: max(map(len, screen().splitlines())) <= 60)
        assert "…" not in screen()
        assert "path, state, note" in " ".join(screen().split())
        await pilot.press("q")
        assert app.is_running
        assert not isinstance(app.screen, TextScreen)
        await pilot.press("f1", "escape")
        assert "backup on nas1" in screen()


async def test_keys_move_the_cursor_by_lines_and_pages_and_to_the_ends():
    async with view_state(frames.many(200)) as (app, pilot, screen):
        for on, back, least, most in (
            ("down", "up", 1, 1),
            ("j", "k", 1, 1),
            ("pagedown", "pageup", 5, 20),
            ("ctrl+f", "ctrl+b", 5, 20),
            ("end", "home", 200, 300),
            ("G", "g", 200, 300),
        ):
            await pilot.press(on)
            assert least <= app.devices.cursor <= most, on
            assert f" {cursor_name(app)} " in screen(), on
            await pilot.press(back)
            assert cursor_name(app) == "huge", back


async def test_the_cursor_stays_on_its_device_when_rows_come_and_go():
    feed = FakeFeed((frames.healthy(),))
    async with view_state(feed=feed) as (app, pilot, _):
        await pilot.press("down", "down", "down", "down")
        assert cursor_name(app) == "mirror-1"
        feed.put(
            replace(frames.healthy(), rows=frames.healthy().rows[:1] + frames.healthy().rows[4:])
        )
        await pilot.pause()
        assert cursor_name(app) == "mirror-1"


async def test_enter_opens_the_detail_and_asks_the_feed_and_escape_closes_it_as_well():
    feed = FakeFeed((frames.resilver(),))
    async with view_state(feed=feed, size=(100, 40)) as (app, pilot, screen):
        await pilot.press(*"jjj", "enter")
        await pilot.pause()
        said = screen()
        assert "path         /dev/disk/by-id/ata-WDC_WD40EFRX-68N32N0_WD-WCC7K0ECACF" in said
        assert "serial       WD-\\x1b[1m123" in said
        assert feed.asked == [("tank", app.devices.current.key)]
        for closes in ("enter", "escape"):
            await pilot.press(closes)
            assert "serial" not in screen()
            await pilot.press("enter")


async def test_space_folds_and_counts_left_folds_then_goes_up_and_right_unfolds():
    async with view_state(frames.imbalance()) as (app, pilot, screen):
        await pilot.press("j", "space")
        assert "raidz1-0 ▸4" in screen()
        assert " sda " not in screen()
        await pilot.press("space")
        assert " sda " in screen()
        for unfolds in ("right", "l"):
            await pilot.press("j", "left")
            assert cursor_name(app) == "raidz1-0"
            await pilot.press("left")
            assert " sda " not in screen()
            await pilot.press(unfolds)
            assert " sda " in screen(), unfolds


async def test_filter_as_typed_kept_by_enter_cleared_by_escape():
    """On a slow link, keys typed one after another arrive in one packet: no row of commands."""
    async with view_state(frames.healthy(), size=(100, 40)) as (app, pilot, screen):
        await pilot.press("slash", *"sdc")
        assert "mirror-1" in screen()
        assert "mirror-0" not in screen().split("BALANCE")[0]
        await pilot.press("enter")
        assert "/sdc" in screen()
        assert "? help" in screen()
        await pilot.press("slash", "backspace", "d", "enter")
        assert "/sdd" in screen(), "a filter is there to be corrected"
        await pilot.press("escape")
        assert "nvme2n1" in screen()
        assert app.devices.arrangement.filter == ""
        for name in ("slash", *"sdc"):
            app.post_message(events.Key(name, "/" if name == "slash" else name))
        await pilot.pause()
        assert app.devices.arrangement.filter == "sdc"
        assert app.devices.arrangement.sort == "tree"
        await pilot.press("slash", "enter")
        assert app.devices.arrangement.filter == "sdc/"


async def test_a_pool_that_was_never_seen_has_no_devices_to_match():
    never = replace(frames.healthy(), problem="no answer yet", stale_seconds=None, rows=())
    async with view_state(never) as (_, _, screen):
        assert "no devices seen yet" in screen()
        assert "nothing matches" not in screen()


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (200, 50)])
async def test_the_order_is_marked_on_every_title(size):
    """A title that fills its column gives its last letter to the mark, and is not cut."""
    async with view_state(frames.resilver(), size=size) as (_, pilot, screen):
        for title in ("LAT▾", "BUSY▾", "READ/▾", "WRITE/▾", "▾"):
            await pilot.press("s")
            (heading,) = [line for line in screen().splitlines() if line.startswith(" NAME")]
            assert "…" not in heading
            if title == "BUSY▾" and size[0] == 60:
                assert " by busy " in heading  # the column has no room
                continue
            assert title in heading
            assert heading.count("▾") == 1


async def test_pause_freezes_the_body_and_not_the_header():
    feed = FakeFeed((frames.healthy(),))
    async with view_state(feed=feed) as (_, pilot, screen):
        await pilot.press("p")
        assert "DISPLAY PAUSED" in screen()
        feed.put(replace(frames.imbalance(), pool="backup"))
        await pilot.pause()
        assert "mirror-0" in screen()
        feed.put(replace(frames.resilver(), pool="backup"))
        await pilot.pause()
        assert screen().startswith(" DEGRADED  backup")
        assert "raidz2-0   " not in screen()
        await pilot.press("p")
        assert "PAUSED" not in screen()
        assert "replacing-0" in screen()


async def test_pause_freezes_the_past_of_the_rates_too():
    """A key that repaints must not show samples newer than the pause."""
    made = frames.resilver()
    series, view = RateSeries(), made.scan
    feed = FakeFeed((replace(made, series=series),))

    def sampled() -> None:
        series.advance()
        series.put(SCAN_METRICS, {view.key: (0.0, 1e8)})
        series.put(IoRates._fields, {row.key: IoRates(1e7, 1e7) for row in made.rows})

    sampled()
    async with view_state(feed=feed, size=(120, 40)) as (_, pilot, screen):
        await pilot.press("p")
        before = screen()
        for _ in range(5):
            sampled()
        await pilot.press("z", "z")
        assert screen() == before
        await pilot.press("p")
        assert screen() != before


async def test_interval():
    feed = FakeFeed((frames.healthy(),), interval=1.0)
    async with view_state(feed=feed) as (_, pilot, screen):
        for more in ("plus", "equals_sign"):
            await pilot.press(more)
            assert feed.interval == 2.0, more
            assert "every 2s" in screen()
            await pilot.press("minus")
        await pilot.press("minus")
        assert feed.interval == 0.5


async def test_a_recording_keeps_its_own_pace():
    feed = FakeFeed((frames.healthy(),), interval=0.0)
    async with view_state(feed=feed) as (_, pilot, _):
        await pilot.press("plus")
        assert feed.interval == 0.0


_LEAVING = {"ctrl+z", "ctrl+c", "q"}
_STAYING = [name for key in SHIPPED.looks for name in key.keys if name not in _LEAVING]


async def test_no_key_fails_anywhere():
    """Press every key of the table, on every screen, with the oddest disk names."""
    feed = FakeFeed((frames.odd_names(), frames.healthy()))
    async with view_state(feed=feed) as (app, pilot, screen):
        for before in ((), ("question_mark",), ("t",), ("o",), ("slash",), ("2",)):
            for key in _STAYING:
                await pilot.press(*before, key)
                assert app.is_running, (before, key)
            screen()
            await pilot.press("escape", "escape")


async def test_no_key_fails_before_the_first_frame():
    async with view_state(feed=FakeFeed()) as (app, pilot, _):
        for key in _STAYING:
            await pilot.press(key)
            assert app.is_running


async def test_keys_of_the_list_do_nothing_behind_another_screen():
    async with view_state(frames.resilver()) as (app, pilot, _):
        await pilot.press("question_mark", "s", "space", "z")
        await pilot.press("escape")
        assert app.main_on_top
        assert app.devices.arrangement == Arrangement()
        assert app.main_screen.zoomed is None
        await pilot.press("s")
        assert app.devices.arrangement.sort != "tree"


async def test_an_alert_goes_once_it_has_passed_or_with_esc_after_it_could_be_read(monkeypatch):
    feed = FakeFeed()
    feed.alerts = SimpleNamespace(rules=AlertRules())
    app = console(feed)
    shown = (frames.resilver(),)
    async with app.run_test(size=(80, 24)) as pilot:
        for passes in (True, False):
            monkeypatch.setattr(AlertRules, "has_passed", lambda *_: False)
            feed.queue.put_nowait(Update(shown, Capabilities("demo"), (ALERT,)))
            await until(pilot, lambda: any(app.messages))
            await pilot.press("escape")
            assert any(app.messages), "nobody can have read it yet"
            if passes:
                monkeypatch.setattr(AlertRules, "has_passed", lambda *_: True)
                feed.queue.put_nowait(Update(shown, Capabilities("demo")))
            else:
                for each in app.messages:
                    each.begun -= PAGE
                await pilot.press("escape")
            await until(pilot, lambda: not any(app.messages))


ALERT = Alert("stalled", "tank", 12.0, "[b]it\x1b stands still", "warning", "scan")


async def test_an_alert_is_shown_as_it_is_and_rings_once_and_what_cannot_be_kept_is_told(
    monkeypatch,
):
    feed, written = FakeFeed(), []
    app = console(feed)
    async with app.run_test(size=(80, 24)) as pilot:
        monkeypatch.setattr(app._driver, "write", written.append)
        shown = (frames.resilver(),)
        feed.queue.put_nowait(Update(shown, Capabilities("demo"), (ALERT,), "\aring"))
        note = "tank: history not kept: /s: No space left on device"
        feed.queue.put_nowait(Update(shown, Capabilities("demo"), notes=(note,)))
        for _ in range(3):
            await pilot.pause()
        told, alert = app.messages
        assert alert.message == "tank: [b]it\\x1b stands still"
        assert alert.severity == "warning"
        assert told.message == note
        assert written.count("\aring") == 1
