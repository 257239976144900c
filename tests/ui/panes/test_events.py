"""Current conditions: damaged files, zpool's messages, why the pool is not read in a better way."""

from __future__ import annotations

from tests.records import replace
from tests.ui import frames
from tests.ui.drawn import LOOK, plain, text
from tests.ui.fakes import FakeFeed, view_state
from zconsole.pool.model import Event, HostLoad
from zconsole.timeline.feed import Update
from zconsole.ui.panes.events import pane_lines
from zconsole.ui.panes.reasons import machine
from zconsole.ui.widgets.draw import width_of
from zconsole.zfs.sources.base import NO_READER, Capabilities

SAYS = "One or more devices has experienced an error resulting in data corruption."
ACTION = "Restore the file in question if possible. Otherwise restore the pool from backup."
SEE = "https://openzfs.github.io/openzfs-docs/msg/ZFS-8000-8A"
FILES = tuple(f"/media/films/{'long name ' * 9}{number}.mkv" for number in range(9))
BY_TEXT = Capabilities("text", reason="libzfs: symbol zpool_get_config missing; no JSON")


def damaged():
    return replace(
        frames.healthy(),
        message=SAYS,
        action=ACTION,
        see=SEE,
        error_count=len(FILES),
        errors=FILES,
    )


class TestPane:
    def test_damaged_files_come_first_then_events_then_what_zpool_says(self):
        frame = replace(damaged(), events=frames.resilver().events)
        lines = pane_lines(frame, BY_TEXT, LOOK, 200)
        said = text(lines)
        order = ("damaged", "ONLINE again", f"zpool says        {SAYS}", ACTION, SEE)
        places = [said.index(each) for each in order]
        assert places == sorted(places)
        assert "read as text      libzfs: symbol zpool_get_config missing; no JSON" in said

    def test_new_errors_of_one_device_are_told_in_one_until_something_else_happens(self):
        def of(t: float, vdev: str, moved: str) -> Event:
            t += frames.NOW - 600
            return Event(t, "errors", f"{vdev}: {moved}", "warning", vdev=vdev, origin="console")

        events = (
            of(0, "sda", "1 new read error"),
            Event(frames.NOW - 590, "scrub_start", "scrub started", "notice"),
            of(20, "sda", "1 new read error"),
            of(30, "sdb", "2 new checksum errors"),
            of(40, "sda", "3 new read errors, 1 new checksum error"),
        )
        said = text(pane_lines(replace(frames.healthy(), events=events), None, LOOK, 100))
        assert "sda: 4 new read errors, 1 new checksum error since 12:31" in said
        assert said.count("sda: ") == 2
        assert said.count("sdb: ") == 1

    def test_a_return_is_told_once_and_a_restart_with_its_cause_alone(self):
        """An outage of one disk took seven lines, of which two said nothing new."""

        def of(t: float, name: str, text: str, vdev: str | None = None) -> Event:
            return Event(frames.NOW - 600 + t, name, text, "notice", vdev)

        events = (
            of(0, "statechange", "sda is REMOVED", "sda"),
            of(2, "statechange", "the pool went from ONLINE to DEGRADED"),
            of(40, "vdev_online", "sda is ONLINE", "sda"),
            of(40, "history_event", "scan aborted, restarting"),
            of(40, "resilver_restart", "resilver restarted 12:31 after sda returned"),
            of(45, "statechange", "the pool went from DEGRADED to ONLINE"),
            of(45, "statechange", "sda went from REMOVED to ONLINE", "sda"),
            of(300, "statechange", "sda is REMOVED", "sda"),
            of(301, "statechange", "sdb is REMOVED", "sdb"),
            of(400, "vdev_online", "sda is ONLINE", "sda"),
        )
        said = text(pane_lines(replace(frames.healthy(), events=events), None, LOOK, 100))
        assert len(said.splitlines()) == len(events) - 2
        assert said.count("sda is ONLINE") == said.count("sda is REMOVED") == 2
        assert "scan aborted" not in said

    def test_a_few_files_among_the_rest_and_all_where_there_is_room(self):
        few = pane_lines(damaged(), None, LOOK, 60)
        assert max(map(width_of, few)) <= 60
        assert text(few).count("damaged") == 4
        for number in range(3):
            assert f"{number}.mkv" in text(few)
        assert "and 6 more" in text(few)
        wrapped = pane_lines(damaged(), None, LOOK, 60, room=6)
        assert "and 6 more" in text(wrapped)
        assert len(wrapped) > len(few)
        whole = pane_lines(damaged(), None, LOOK, 60, every=True)
        assert max(map(width_of, whole)) <= 60
        assert " 6 more" not in text(whole)
        told = "".join(line[19:].strip() for line in text(whole).splitlines())
        for said in (*FILES, SAYS, ACTION, SEE):
            assert said.replace(" ", "") in told.replace(" ", "")

    def test_a_message_is_wrapped_where_rows_are_free(self):
        frame = replace(frames.healthy(), message=SAYS, see=SEE)
        cut, wrapped = (pane_lines(frame, None, LOOK, 60, room=room) for room in (2, 4))
        assert len(cut) == 2
        assert "…" in text(cut)
        assert len(wrapped) == 4
        assert "…" not in text(wrapped)
        assert pane_lines(frame, None, LOOK, 60, room=3) == cut

    def test_names_nobody_may_see_are_not_no_names(self):
        frame = replace(damaged(), errors=None)
        assert "only root is told which files" in text(pane_lines(frame, None, LOOK, 80))
        suspended = replace(frame, state="SUSPENDED")
        assert "damaged" not in text(pane_lines(suspended, None, LOOK, 80))
        # zpool counts damaged blocks: one file may have hundreds.
        blocks = replace(damaged(), error_count=512, errors=FILES[:1])
        assert "511 more" not in text(pane_lines(blocks, None, LOOK, 80))

    def test_what_zpool_said_before_a_pool_was_suspended_is_no_advice_any_more(self):
        resilvering = replace(
            frames.suspended(), state="DEGRADED", action="Wait for the resilver to complete."
        )
        said = text(pane_lines(resilvering, None, LOOK, 120))
        assert "Wait for" not in said
        assert "bring back the devices that are out, then clear the pool (zpool clear)" in said

    def test_nothing_to_tell_is_said(self):
        for source in (Capabilities("libzfs"), Capabilities(NO_READER, reason="no zpool")):
            said = text(pane_lines(frames.healthy(), source, LOOK, 80))
            assert said == " no events since the console started"

    def test_what_is_written_outside_cannot_reach_the_terminal(self):
        frame = replace(damaged(), errors=("/a\x1b[31m\nb",), message="\x1b[2J", see="\x07")
        for room in (0, 6):
            odd = Capabilities("json", "\x1b]0;x\x07")
            said = text(pane_lines(frame, odd, LOOK, 80, room=room))
            assert not set(said) & {"\x1b", "\x07"}, room


async def test_the_console_says_which_files_and_why_it_reads_text():
    feed = FakeFeed()
    feed.queue.put_nowait(Update((damaged(),), BY_TEXT))
    async with view_state(feed=feed, size=(80, 50)) as (_, _, screen):
        assert "0.mkv" in screen()
        assert SAYS[:40] in screen()
        assert "read as text      libzfs: symbol zpool_get_config missing" in screen()


async def test_enter_on_the_pool_tells_of_its_machine():
    async with view_state(frames.healthy(), size=(80, 50)) as (_, pilot, screen):
        assert "processor" not in screen()
        await pilot.press("enter")
        assert "machine      processor 10 %, memory 8G of 16G used" in screen()
        assert "read as      libzfs" in screen()


def test_load_is_told_as_far_as_it_is_known():
    assert machine(None, LOOK) == ""
    assert machine(HostLoad(), LOOK) == ""
    assert machine(HostLoad(0.5), LOOK) == "processor 50 %"
    whole = HostLoad(0.341, 2**34, 2**33, 3 * 2**30)
    assert machine(whole, LOOK) == "processor 34 %, memory 8G of 16G used, ARC 3G"


def event_lines(events, width, room=0):
    """Return the lines of the events pane with nothing else in it."""
    return pane_lines(
        replace(frames.resilver(), events=tuple(events)), None, LOOK, width, room=room
    )


class TestEvents:
    def test_a_long_event_is_cut_among_others_and_whole_where_it_may_be(self):
        frame = frames.resilver()
        text = "Replace ata-WDC_WD40EFRX by /dev/disk/by-id/ata-WDC_WD40EFRX-68N32N0_H6TJMH1P"
        made = [Event(frame.t, "x", text, "notice", origin="console"), *frame.events]
        (line, *_), lines = event_lines(made[:1], 60), event_lines(made[:1], 60, room=6)
        assert plain(line).endswith("…")
        said = "".join(plain(line)[19:] for line in lines)
        assert said.replace(" ", "") == text.replace(" ", "")
        assert max(map(width_of, lines)) <= 60
        whole = event_lines(frame.events, 200, room=6)
        assert [*map(plain, whole)] == [*map(plain, event_lines(frame.events, 200))]


def test_what_zpool_says_begins_under_the_texts_of_events():
    made = replace(damaged(), errors=(), error_count=0, events=(Event(frames.NOW, "x", "it is"),))
    shown = [plain(line) for line in pane_lines(made, None, LOOK, 120)]
    at = {line.find(said) for line in shown for said in ("it is", SAYS, ACTION) if said in line}
    assert len(at) == 1
