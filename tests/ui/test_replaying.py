"""A replay on the console: its position, pause, speed and moving about."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from datetime import UTC

import pytest

from tests.table import rows
from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.fakes import FakeFeed, console, screen_text, until, view_state
from zconsole.errors import UsageError
from zconsole.pool.model import Event
from zconsole.timeline.feed import ReplayFeed, Update
from zconsole.timeline.session import Session
from zconsole.ui.dialogs.go_to_screen import time_typed
from zconsole.ui.keys import SHIPPED, shown
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.recording import Gaps
from zconsole.zfs.sources.replay import Playback, ReplaySource


def said(app):
    return [message.message for message in app.messages]


POOL = "  pool: tank\n state: ONLINE\n"
OTHER = "  pool: other\n state: ONLINE\n"
THIRD = "  pool: third\n state: ONLINE\n"
KEYS = ", . step  < > 10 %  ( ) event  { } speed"


@pytest.fixture
def feed(tmp_path):
    path = tmp_path / "r"
    # With a sample every ten minutes it stays at the first one, however busy the machine is.
    lines = (json.dumps({"t": 1795166186 + t, "text": POOL}) for t in range(0, 120_001, 600))
    path.write_text("".join(f"{line}\n" for line in lines))
    return ReplayFeed(ReplaySource(str(path), 1.0), Session(), Session)


@asynccontextmanager
async def replaying(feed, size=(80, 24)):
    """Show the first sample of a recording; yields the console and its pilot."""
    app = console(feed)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "0.0 %" in screen_text(app))
        yield app, pilot


async def test_it_says_where_it_is_and_keys_move_it(feed):
    async with replaying(feed, (120, 24)) as (app, pilot):
        line = screen_text(app).splitlines()[-2]
        assert line.startswith(" plays  1x")
        assert "2026-11-20 " in line
        assert KEYS in line
        assert " Space pause " in screen_text(app).splitlines()[-1]
        assert "age" not in screen_text(app).splitlines()[0]
        await pilot.press("p", "right_curly_bracket")
        await until(pilot, lambda: " paused 2x" in screen_text(app))
        assert "PAUSED" in screen_text(app).splitlines()[0]
        assert " Space go on " in screen_text(app).splitlines()[-1]
        await pilot.press("greater_than_sign")
        await until(pilot, lambda: " 10.0 %" in screen_text(app))
        await pilot.press("p")
        assert app.view_state.frozen is None
        assert not feed.playback.paused
        for key, share in (("comma", "9.5"), ("comma", "9.0"), ("full_stop", "9.5")):
            await pilot.press(key)
            await until(pilot, lambda share=share: f" {share} %" in screen_text(app))
            assert feed.playback.paused


STATES = ("ONLINE", *["DEGRADED"] * 4, *["ONLINE"] * 300)


def changing(path, interval, pad=0):
    """Return the feed of two pools, of which one changes with the second and the sixth sample."""
    path.write_text(
        "".join(
            f"{json.dumps({'t': 1000.0 + interval * n + late, 'text': text})}{' ' * pad}\n"
            for n, state in enumerate(STATES)
            for late, text in ((0.0, POOL.replace("ONLINE", state)), (0.3, OTHER))
        )
    )
    return ReplayFeed(ReplaySource(str(path), 1.0), Session(), Session)


async def begun(path, interval, pad=0):
    """Return that feed after its first round."""
    feed = changing(path, interval, pad)
    await feed.next()
    return feed


@pytest.fixture
async def recorded(tmp_path):
    return await begun(tmp_path / "r", 2)


async def test_a_jump_remembers_more_of_a_recording_with_few_samples(tmp_path):
    feed = await begun(tmp_path / "slow", 60, pad=2**14)
    feed.playback.seek(0.5)
    shown = await feed.next()
    assert shown.frames[0].t > 1000.0 + 60 * 150
    assert {event.t for event in shown.frames[0].events} == {1060.0, 1300.0}


async def went(feed, ask, direction, *, waiting=False):
    """Return the seconds at which it is after that, while it waited for a sample or before."""
    taking = asyncio.create_task(feed.next()) if waiting else None
    await asyncio.sleep(0)
    ask(direction)
    shown = await (feed.next() if taking is None else taking)
    while feed.playback.jumps:
        shown = await feed.next()
    assert feed.playback.paused
    return shown.frames[0].t - 1000.0


@pytest.mark.parametrize("waiting", [False, True])
async def test_it_is_stepped_sample_by_sample_on_and_back_to_the_first(recorded, waiting):
    step = recorded.playback.step
    goes = [await went(recorded, step, to, waiting=waiting) for to in (1, 1, 1, -1, 1, -1, -1, -1)]
    assert goes == [2, 4, 6, 4, 6, 4, 2, 0]
    assert await went(recorded, step, -1) == 0


async def test_steps_asked_for_at_once_are_all_gone(recorded):
    recorded.playback.step(1)
    recorded.playback.step(1)
    assert await went(recorded, recorded.playback.step, 1) == 6


@pytest.mark.parametrize("waiting", [False, True])
async def test_events_are_found_on_and_back_and_then_the_ends(recorded, waiting):
    search = recorded.playback.search
    goes = [await went(recorded, search, to, waiting=waiting) for to in (1, 1, -1, -1, 1)]
    assert goes == [2, 10, 2, 0, 2]
    await went(recorded, search, 1)
    assert await went(recorded, search, 1) == 2 * (len(STATES) - 1)
    assert await recorded.next() is None
    assert await went(recorded, search, -1) == 10


TREE = """
  pool: tank
 state: ONLINE
config:

\tNAME        STATE     READ WRITE CKSUM
\ttank        ONLINE       0     0     0
\t  mirror-0  ONLINE       0     0     0
\t    sda     {}       0     0     {}
\t    sdb     ONLINE       0     0     0

errors: No known data errors
"""
STEPS = (0, 3, 4, 5, "REMOVED", 5, 6, 7, 7, 7)
"""Errors of a disk in samples that follow each other; in one of them it is away."""


def with_errors(path):
    """Return the feed of a recording in which most events are new errors of one disk."""
    shown = (
        TREE.format(*(("REMOVED", 5) if step == "REMOVED" else ("ONLINE", step))) for step in STEPS
    )
    lines = (json.dumps({"t": 1000.0 + t, "text": text}) for t, text in enumerate(shown))
    path.write_text("".join(f"{line}\n" for line in lines))
    return ReplayFeed(ReplaySource(str(path), 1.0), Session(), Session)


async def test_new_errors_that_follow_each_other_are_one_event_to_go_to(tmp_path):
    """Of 84 events most were "1 new checksum error"; a search stopped at each of them."""
    feed = with_errors(tmp_path / "r")
    await feed.next()
    search = feed.playback.search
    goes = [await went(feed, search, to) for to in (1, 1, 1, 1, -1, -1, -1)]
    assert goes == [1, 4, 5, 6, 5, 4, 1]


async def test_new_errors_that_follow_each_other_are_one_line_of_the_list(tmp_path):
    feed = with_errors(tmp_path / "r")
    app = console(feed)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "@ go to" in screen_text(app).splitlines()[-1])
        await pilot.press("at")
        await until(pilot, lambda: "4 events" in screen_text(app))
        told = [line for line in screen_text(app).splitlines() if "checksum" in line]
        assert "00:16:41 " in told[0]
        assert "sda: 5 new checksum errors until 00:16:43" in told[0]
        assert "sda: 2 new checksum errors until 00:16:47" in told[1]
        await pilot.press("down", "up", "enter")
        await until(pilot, lambda: app.main_on_top and not feed.playback.jumps)
        assert feed.playback.t == 1001.0


async def test_the_event_that_was_gone_to_is_named_until_the_next_key(tmp_path):
    """After ")" nothing said which event it was."""
    async with replaying(changing(tmp_path / "r", 20)) as (app, pilot):
        for keys, event in (
            (["right_parenthesis"], "ONLINE to DEGRADED"),
            (["right_parenthesis"], "DEGRADED to ONLINE"),
            (["left_parenthesis"], "ONLINE to DEGRADED"),
            (["at", *"+1m", "enter"], ""),
            (["at", "down", "enter"], "DEGRADED to ONLINE"),
        ):
            await pilot.press(*keys)
            if event:
                await until(pilot, lambda event=event: any(event in each for each in said(app)))
                assert said(app)[0].startswith("event: ")
            else:
                await until(pilot, lambda: not said(app))


@rows(("count", "head"), [(1, "event: a "), (2, "event 1 of 2: a "), (3, "event 1 of 3: a ")])
async def test_of_several_events_gone_to_at_once_how_many_is_said_where_it_is_not_cut(
    tmp_path, count, head
):
    """A long one ended in "(and…"."""
    async with replaying(changing(tmp_path / "r", 2)) as (app, pilot):
        events = tuple(Event(1000.0, "statechange", f"{name} " * 60) for name in "abc"[:count])
        app._name_event(Update((), Capabilities("replay"), reached=events))
        await until(pilot, lambda: any(each.startswith(head) for each in said(app)))


async def test_events_searched_for_at_once_are_counted(recorded):
    for ask in (1, 1):
        recorded.playback.search(ask)
    assert await went(recorded, recorded.playback.search, 1) == 2 * (len(STATES) - 1)
    recorded.playback.search(-1)
    assert await went(recorded, recorded.playback.search, -1) == 2


async def test_another_search_during_one_is_counted_too(recorded):
    recorded.playback.seek(1.0)
    await recorded.next()
    recorded.playback.search(-1)
    searching = asyncio.create_task(recorded.next())
    await asyncio.sleep(0.01)
    assert recorded.playback.request.events < 0
    recorded.playback.search(-1)
    await searching
    while recorded.playback.jumps:
        await recorded.next()
    assert recorded.playback.t == 1002.0


async def test_a_pause_ends_the_search_for_an_event(recorded):
    await went(recorded, recorded.playback.search, 1)
    recorded.playback.search(1)
    searching = asyncio.create_task(recorded.next())
    await asyncio.sleep(0)
    recorded.playback.toggle()
    assert (await searching).frames[0].t - 1000.0 < 10
    assert recorded.playback.paused


async def test_all_events_are_found_beside_the_replay_which_stays_where_it_is(recorded):
    await recorded.read_events()
    found = {pool: [event.t for event in events] for pool, events in recorded.events.items()}
    assert found == {"tank": [1002.0, 1010.0]}
    assert recorded.playback.t == 1000.0
    assert not recorded.playback.jumps


async def test_a_list_of_events_and_a_line_to_type_a_time_lead_to_it(tmp_path):
    feed = changing(tmp_path / "r", 20)
    app = console(feed)

    async def went(*keys):
        await pilot.press("at")
        await until(pilot, lambda: "2 events" in screen_text(app))
        shown = screen_text(app)
        await pilot.press(*keys)
        await until(pilot, lambda: app.main_on_top and not feed.playback.jumps)
        assert feed.playback.paused
        return shown, feed.playback.t - 1000.0

    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "@ go to" in screen_text(app).splitlines()[-1])
        shown, place = await went("down", "enter")
        assert place == 100.0
        lines = [line for line in shown.splitlines() if "the pool went" in line]
        assert [line[1:9] for line in lines] == ["00:17:00", "00:18:20"]
        assert (await went("up", "enter"))[1] == 20.0
        half = 20 * (len(STATES) // 2 + 1)  # the first round after it
        assert (await went(*"50%", "enter"))[1] == half
        assert (await went("minus", *"1m40s", "enter"))[1] == half - 100
        feed.playback.paused = False
        await pilot.press("at", *"never", "enter")
        assert "14:05" in said(app)[-1]
        # What is typed next replaces it, and after that is typed on.
        await pilot.press(*"50%")
        assert app.screen.query_one("#prompt").value == "50%"
        await pilot.press("escape")
        assert app.main_on_top
        assert not feed.playback.paused


async def test_the_list_of_events_begins_at_the_one_that_was_gone_to(tmp_path):
    """The sample that shows it came a second later, and showed the next event, too."""
    path = tmp_path / "r"
    lines = (
        json.dumps({"t": 1000.0 + 20 * n + late, "text": text})
        for n in range(300)
        for late, text in (
            (0.0, POOL),
            (0.3, OTHER if n < 1 else OTHER.replace("ONLINE", "DEGRADED")),
            (0.6, THIRD if n < 1 else THIRD.replace("ONLINE", "DEGRADED")),
        )
    )
    path.write_text("".join(f"{line}\n" for line in lines))
    feed = ReplayFeed(ReplaySource(str(path), 1.0), Session(), Session)
    app = console(feed)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "@ go to" in screen_text(app).splitlines()[-1])
        for key, place in (("up", 0), ("down", 1), ("up", 0)):
            await pilot.press("at")
            await until(pilot, lambda: "2 events" in screen_text(app))
            await pilot.press(key, "enter")
            await until(pilot, lambda: app.main_on_top and not feed.playback.jumps)
            await pilot.press("at")
            await until(pilot, lambda: "2 events" in screen_text(app))
            assert app.screen.view.cursor == place
            await pilot.press("escape")
        await pilot.press("full_stop", "at")
        await until(pilot, lambda: not feed.playback.jumps and "2 events" in screen_text(app))
        assert app.screen.view.cursor == 1, "the last one before"


@rows(
    ("typed", "place"),
    [
        ("50%", 43200.0),
        ("50 %", 43200.0),
        ("+10m", 11400.0),
        ("-1h", 7200.0),
        ("-3h", 0.0),
        ("+21h", 86400.0),
        ("04:00", 7200.0),
        ("4:00", 7200.0),
        ("02:00:30", 30.0),
        ("01:59", 86340.0),
        ("1970-01-01 03:00", 3600.0),
        ("1970-01-01T08:00+05:00", 3600.0),
        ("1970-01-01T03:00:00Z", 3600.0),
    ],
)
def test_a_place_is_typed_as_a_time_a_distance_or_a_share(typed, place):
    begin = 7200.0
    span = begin, begin + 86400.0
    assert time_typed(typed, begin + 10800.0, span, UTC) == begin + place


@rows(
    ("typed", "why"),
    [
        ("never", "14:05"),
        ("", "14:05"),
        ("25:00", "14:05"),
        ("%", "14:05"),
        ("101%", "14:05"),
        ("+", "14:05"),
        ("00:30", "02:00 to 03:00"),
        ("-1m", "02:00 to 03:00"),
        ("+1h30m", "02:00 to 03:00"),
        ("1999-01-01 03:00", "02:00 to 03:00"),
    ],
)
def test_what_is_no_place_of_the_recording_is_refused_with_what_is(typed, why):
    with pytest.raises(UsageError, match=why):
        time_typed(typed, 7200.0, (7200.0, 10800.0), UTC)


FIRST = 7200.0 + 40.5


@rows("typed", ["02:00", "1970-01-01 02:00", "02:00:40"])
def test_the_minute_or_second_in_which_the_recording_begins_means_its_begin(typed):
    assert time_typed(typed, FIRST, (FIRST, FIRST + 3600), UTC) == FIRST


@rows(
    ("typed", "days", "why"),
    [("02:00:39", 0, "02:00 to 03:00"), ("1999-01-01", 2, "1970-01-01 02:00 to 1970-01-03 03:00")],
)
def test_the_end_has_a_date_if_it_is_on_another_day(typed, days, why):
    with pytest.raises(UsageError, match=why):
        time_typed(typed, FIRST, (FIRST, FIRST + 3600 + days * 86400), UTC)


async def test_a_recording_of_one_sample_is_gone_to_as_any_other(tmp_path):
    path = tmp_path / "r"
    path.write_text(f"{json.dumps({'t': 1000.0, 'text': POOL})}\n")
    app = console(ReplayFeed(ReplaySource(str(path), 1.0), Session(), Session))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "100.0 %" in screen_text(app))
        await pilot.press("at")
        await until(pilot, lambda: "GO TO  0 events" in screen_text(app))


@pytest.mark.parametrize("text", [None, "nothing\n"])
async def test_a_file_that_is_gone_is_said_and_the_replay_stays(tmp_path, text):
    path = tmp_path / "r"
    feed = changing(path, 20)
    async with replaying(feed, (200, 24)) as (app, pilot):
        await pilot.press("full_stop")
        await until(pilot, lambda: feed.playback.t == 1020.0)
        path.unlink()
        if text is not None:
            path.write_text(text)
        for _ in range(2):
            await pilot.press("at")
            await until(pilot, lambda: f"0 events; events not read: {path}: " in screen_text(app))
            await pilot.press("escape")
        for key in ("comma", "left_parenthesis", "less_than_sign"):
            app.messages.said.clear()
            await pilot.press(key)
            await until(pilot, lambda: any(str(path) in message for message in said(app)))
            assert app.view_state.frames[0].t == feed.playback.t
        before = feed.playback.t
        await pilot.press("full_stop")
        await until(pilot, lambda: feed.playback.t > before)


async def test_events_are_found_after_a_time_without_pools_too(tmp_path):
    path = tmp_path / "r"
    texts = ("no pools available\n", POOL, POOL.replace("ONLINE", "DEGRADED"))
    lines = (json.dumps({"t": 1000.0 + n, "text": text}) for n, text in enumerate(texts))
    path.write_text("".join(f"{line}\n" for line in lines))
    feed = ReplayFeed(ReplaySource(str(path), 1.0), Session(), lambda: Session(gaps=Gaps()))
    await feed.read_events()
    assert [event.t for event in feed.events["tank"]] == [1002.0]


async def test_events_name_their_pool_also_after_it_has_left(tmp_path):
    path = tmp_path / "r"
    went = [OTHER, OTHER.replace("ONLINE", "DEGRADED"), *[POOL] * 9]
    lines = (json.dumps({"t": 1000.0 + 600 * n, "text": text}) for n, text in enumerate(went))
    path.write_text("".join(f"{line}\n" for line in lines))
    feed = ReplayFeed(ReplaySource(str(path), 1.0), Session(), Session)
    async with replaying(feed) as (app, pilot):
        feed.playback.pause_at(1000.0 + 600 * 10)
        await until(pilot, lambda: [f.pool for f in app.view_state.frames] == ["tank"])
        await pilot.press("at")
        await until(pilot, lambda: "other: " in screen_text(app))


async def test_after_its_end_it_can_be_moved_back(feed):
    async with replaying(feed) as (app, pilot):
        feed.playback.speed = 1e9
        await pilot.press(*("greater_than_sign",) * 10)
        await until(pilot, lambda: "ENDED" in screen_text(app))
        assert "100.0 %" in screen_text(app)
        assert " tank on nas1 " in screen_text(app), "the last frame stays"
        assert screen_text(app).splitlines()[-2].endswith(KEYS)
        assert screen_text(app).startswith(" ended ", screen_text(app).rindex("\n ended") + 1)
        footer = screen_text(app).splitlines()[-1]
        assert "pause" not in footer
        assert "Space play again" in footer
        assert "@ go to" in footer
        for key in ("right_curly_bracket", "full_stop", "right_parenthesis"):
            app.messages.said.clear()
            await pilot.press(key)
            assert said(app) == ["the recording has ended; < goes back 10 %"]
        feed.playback.speed = 1.0
        await pilot.press("less_than_sign")
        await until(pilot, lambda: "90.0 %" in screen_text(app))
        assert "ENDED" not in screen_text(app)


@pytest.mark.parametrize("key", ["space", "p"])
@pytest.mark.parametrize("paused", [False, True])
async def test_at_its_end_it_is_played_again_from_the_start(feed, key, paused):
    """Space changed nothing, and the help did not say what does."""
    async with replaying(feed) as (app, pilot):
        feed.playback.speed = 1e9
        await pilot.press(*("greater_than_sign",) * 10)
        await until(pilot, lambda: "ENDED" in screen_text(app))
        feed.playback.speed, feed.playback.paused = 1.0, paused
        await pilot.press(key)
        await until(pilot, lambda: " plays " in screen_text(app))
        assert "ENDED" not in screen_text(app)
        assert feed.playback.t == feed.playback.span[0]


async def test_a_recording_without_places_says_so(feed):
    async with replaying(feed) as (app, pilot):
        feed.playback.span = None
        for key in ("full_stop", "comma", "greater_than_sign", "left_parenthesis", "at"):
            app.messages.said.clear()
            await pilot.press(key)
            assert said(app) == ["in a compressed recording or a pipe one cannot move about"]
            assert not feed.playback.jumps
        assert "go to" not in screen_text(app).splitlines()[-1]
        line = screen_text(app).splitlines()[-2]
        assert "{ } speed" in line
        assert "step" not in line


async def test_without_a_replay_its_keys_say_that_they_do_nothing():
    async with view_state(frames.healthy()) as (app, pilot, read):
        before = read()
        for row in SHIPPED.of("Replay"):
            await pilot.press(row.keys[0])
            assert said(app) == [f"Key {shown(row.keys[0])} does nothing here; ? lists the keys"]
            assert read().splitlines()[:-1] == before.splitlines()[:-1]


async def test_space_pauses_a_replay_wherever_the_focus_is(feed):
    async with replaying(feed) as (app, pilot):
        assert "Space pause" in screen_text(app).splitlines()[-1]
        for paused in (True, False):
            await pilot.press("space")
            assert feed.playback.paused is paused
            app.main_screen.action_show_pane("events")
        assert not app.devices.arrangement.folded


async def test_a_recording_offers_no_actions():
    recording = Capabilities("replay", live=False)
    async with acting("resilver", capabilities=recording) as a:
        actions = a.app.view_state.look.keys.actions
        line = a.screen.splitlines()[-1]
        assert [key.short for key in actions if key.short in line] == []
        offered = {command.title.lower() for command in a.app.get_system_commands(a.app.screen)}
        acting_keys = [key for key in SHIPPED.rows if key.name == "act"]
        assert [key.text for key in acting_keys if key.text.lower() in offered] == []
        await a.resize((100, 200))
        said = await a.read(a.press("question_mark"))
        assert "command palette" in said
        assert [key.text for key in acting_keys if key.text in said] == []


async def test_a_demo_says_which_keys_change_its_speed_and_they_do():
    feed, steps = FakeFeed((frames.healthy(),)), []

    def _faster(step):
        steps.append(step)
        return 4.0

    feed.faster = _faster
    async with view_state(feed=feed) as (_, pilot, screen):
        await until(pilot, lambda: "{ } demo speed" in screen())
        await pilot.press("right_curly_bracket", "left_curly_bracket")
        assert steps == [1, -1]
        assert "speed 4x" not in screen(), "the first line has it"
        await pilot.press("question_mark")
        await pilot.press("right_curly_bracket")  # also over another screen, which is told it
        assert steps == [1, -1, 1]
        assert "speed 4x" in screen()


@pytest.mark.parametrize("pane", ["scan", "devices", "events"])
@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
async def test_a_pane_on_the_whole_screen_leaves_room_for_position_and_keys(pane, size):
    feed = FakeFeed((frames.resilver(),))
    feed.playback = Playback(t=1000.0, span=(0.0, 2000.0))
    async with view_state(feed=feed, size=size) as (app, pilot, read):
        app.set_focus(app.main_screen.panes[pane])
        await pilot.press("z")
        position, keys = read().splitlines()[-2:]
        assert position.startswith(" plays")
        assert "z zoom out" in keys


async def test_its_keys_come_first_in_the_help_of_a_replay_only(feed):
    async with replaying(feed) as (app, pilot):
        await pilot.press("question_mark")
        assert screen_text(app).splitlines()[1] == " Replay"
    async with view_state(frames.healthy()) as (_, pilot, read):
        await pilot.press("question_mark")
        assert read().splitlines()[1] == " Move"


async def test_a_question_mark_opens_the_help_where_nothing_is_typed_yet(feed):
    async with replaying(feed) as (app, pilot):
        await pilot.press("at", "question_mark")
        assert "that share of the recording" in screen_text(app)
        await pilot.press("escape", *"14", "question_mark")
        assert "14?" in screen_text(app).splitlines()[0]
