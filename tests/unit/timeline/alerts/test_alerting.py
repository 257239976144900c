from __future__ import annotations

import asyncio
import json
import sys

import pytest

from tests.factory import frame, mirror_pool
from tests.records import replace
from tests.table import rows
from tests.unit.timeline.alerts.test_rules import FINISHED, left_behind, running
from zconsole.errors import UsageError
from zconsole.pool.scan_outcome import GRACE
from zconsole.system.async_process import ProcessRunner
from zconsole.system.process import Completed, DeadlineError
from zconsole.system.record_file import AsyncWriter, LockedStore
from zconsole.timeline.alerts.alerting import (
    MOST_HOOKS,
    RESTART,
    Alerting,
    SentAlerts,
    hook_found,
    notification,
    run_hook,
)
from zconsole.timeline.alerts.rules import UNREACHABLE_AFTER, Alert, AlertRules
from zconsole.timeline.feed import Feed, Update
from zconsole.zfs.sources.base import Capabilities

ALERT = Alert("stalled", "tank", 12.0, "it \x1b]52;c;evil\a stands;still", "warning", "scan")
SUSPENDED = frame(mirror_pool(), 1.0, problem="no answer", kstat="SUSPENDED")
OTHER = replace(frame(mirror_pool(), 1.0), pool="other")


def test_a_notification_carries_no_control_character_of_the_text():
    text = notification(ALERT)
    for part in text.split("\x1b\\")[:2]:
        assert part.count("\x1b") == 1
        assert "\a" not in part
    assert text.startswith("\x1b]9;zconsole tank: ")
    assert "\x1b]777;notify;zconsole;tank: " in text


def test_a_notification_is_no_longer_than_a_terminal_takes():
    assert len(notification(replace(ALERT, text="\x1b" * 100_000))) < 1000


def test_a_hook_is_split_like_a_shell_does_and_goes_to_none():
    assert hook_found("true -s 'zfs $(date)' me") == ("true", "-s", "zfs $(date)", "me")
    for bad in ("", "   ", "''", "mail 'unclosed"):
        with pytest.raises(UsageError):
            hook_found(bad)


async def test_a_hook_gets_the_alert_as_one_json_line_and_the_users_own_environment(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("ZFS_COLOR", "mine")
    code = (
        "import sys, os, pathlib; "
        f"pathlib.Path({str(tmp_path / 'out')!r}).write_text("
        "sys.stdin.read() + os.environ['ZFS_COLOR'])"
    )
    assert await run_hook(ProcessRunner(), (sys.executable, "-c", code), ALERT) is None
    line, environment = (tmp_path / "out").read_text().split("\n")
    told = json.loads(line)
    assert (told["version"], told["kind"], told["pool"], told["text"]) == (
        1,
        "stalled",
        "tank",
        ALERT.text,
    )
    assert environment == "mine"


async def test_what_goes_wrong_with_a_hook_is_said_in_words():
    code = "import sys; sys.exit('no route to host')"
    failed = await run_hook(ProcessRunner(), (sys.executable, "-c", code), ALERT)
    assert failed is not None
    assert failed.endswith("exited 1: no route to host")
    absent = await run_hook(ProcessRunner(), ("/nonexistent/hook",), ALERT)
    assert absent is not None
    assert "cannot be run" in absent


class Tells:
    def __init__(self, error=None):
        self.told, self.error = [], error

    async def tell(self, argv, text, deadline):
        self.told.append((tuple(argv), json.loads(text)))
        if self.error is not None:
            raise self.error
        return Completed(tuple(argv), 0, "", "")


class OneRound(Feed):
    async def sample(self):
        return Update((SUSPENDED, OTHER), Capabilities("demo"))

    async def close_sources(self):
        pass


def alerting(runner, **channels):
    feed = OneRound(0.0)
    feed.alerts = Alerting(AlertRules(), runner, **channels)
    return feed


async def test_hooks_run_beside_the_sampling_and_are_waited_for_at_the_end():
    teller = Tells()
    feed = alerting(teller, hook=("page", "me"))
    update = await feed.next()
    assert [alert.kind for alert in update.alerts] == ["suspended"]
    assert teller.told == []
    await feed.aclose()
    assert teller.told[0][0] == ("page", "me")
    assert teller.told[0][1]["kind"] == "suspended"
    assert feed.alerts.take_notes() == ()


class Crowd(Tells):
    """Counts hooks that run at the same time; each ends after some turns of the loop."""

    running = most = 0

    async def tell(self, argv, text, deadline):
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(3):
            await asyncio.sleep(0)
        self.running -= 1
        return await super().tell(argv, text, deadline)


async def test_a_shelf_that_drops_starts_a_few_hooks_at_a_time_and_each_alert_is_sent():
    teller = Crowd()
    feed = alerting(teller, hook=("page",))
    names = [f"p{number}" for number in range(60)]
    feed.sample = lambda: shown(*(replace(SUSPENDED, pool=name) for name in names))
    await feed.next()
    await feed.aclose()
    assert teller.most == MOST_HOOKS
    assert [told["pool"] for _, told in teller.told] == names


async def shown(*frames):
    return Update(frames, Capabilities("demo"))


async def test_an_alert_stays_among_the_events_of_its_pool():
    feed = alerting(Tells())
    for _ in range(2):
        suspended, other = (await feed.next()).frames
        assert [event.name for event in suspended.events] == ["suspended"]
        assert other.events == ()


async def test_a_hook_that_hangs_is_complained_of():
    feed = alerting(Tells(DeadlineError("page")), hook=("page",))
    await feed.next()
    await feed.aclose()
    assert feed.alerts.take_notes() == ("the hook page did not end in 60 s",)
    assert feed.alerts.take_notes() == ()


class Fails(Tells):
    """Fails a number of times, then works."""

    def __init__(self, times):
        super().__init__()
        self.times = times

    async def tell(self, argv, text, deadline):
        done = await super().tell(argv, text, deadline)
        return replace(done, returncode=int(len(self.told) <= self.times))


@rows("times, tries", [(0, 1), (1, 2), (3, 4), (9, 4)])
async def test_a_hook_that_fails_is_tried_again_and_every_round_says_so_once(times, tries):
    teller = Fails(times)
    feed = alerting(teller, hook=("page",))
    notes = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zconsole.timeline.alerts.alerting.RETRY_AFTER", (0.0, 0.0, 0.0))
        for _ in range(200):
            notes += (await feed.next()).notes
            await asyncio.sleep(0)
        while len(teller.told) < tries:
            await asyncio.sleep(0)
    await feed.aclose()
    notes += feed.alerts.take_notes()
    assert len(teller.told) == tries
    assert notes == ["the hook page exited 1"] * min(times, 4)


async def test_the_end_waits_for_no_further_try():
    teller = Fails(9)
    feed = alerting(teller, hook=("page",))
    await feed.next()
    while not teller.told:
        await asyncio.sleep(0)
    await feed.aclose()
    assert len(teller.told) == 1


async def test_an_alert_rings_once():
    feed = alerting(Tells(), bell=True, notify=True)
    first, second = await feed.next(), await feed.next()
    assert [alert.kind for alert in first.alerts] == ["suspended"]
    assert first.ring.startswith("\a\x1b]9;")
    assert second.alerts == ()
    assert second.ring == ""


async def test_silent_channels_write_nothing():
    assert (await alerting(Tells()).next()).ring == ""


def sent_in(place):
    return SentAlerts(LockedStore(place, writer=AsyncWriter()), "page")


async def told_by(place, *rounds):
    """Return the kinds of alerts passed to a hook in one run of a watch."""
    teller = Tells()
    feed = alerting(teller, hook=("page",), sent=sent_in(place))
    for frames in rounds:
        feed.sample = lambda frames=frames: shown(*frames)
        await feed.next()
        for _ in range(5):
            await asyncio.sleep(0)
    await feed.aclose()
    assert feed.alerts.take_notes() == ()
    return [told["kind"] for _, told in teller.told]


def at(t, kstat="SUSPENDED"):
    return frame(mirror_pool(), t, problem="no answer", kstat=kstat)


SUSPENDS, WELL = ["suspended"], frame(mirror_pool(), 60.0)


@rows(
    "runs",
    [
        # What still lasts is sent no second time.
        (([[at(1.0)]], SUSPENDS), ([[at(60.0), OTHER]], []), ([[at(120.0), OTHER]], [])),
        # What passed while nobody watched is sent again, and everything after a long time.
        (([[at(1.0)]], SUSPENDS), ([[WELL], [at(90.0)]], SUSPENDS)),
        (([[at(1.0)]], SUSPENDS), ([[at(2.0 + RESTART)]], SUSPENDS)),
        # The time without a watch begins with the end of the last.
        (([[at(1.0)], [at(2.0)], [at(200.0)]], SUSPENDS), ([[at(199.0 + RESTART)]], [])),
    ],
)
async def test_a_restart_sends_what_is_new_or_lasts_after_a_long_time_without_a_watch(
    tmp_path, runs
):
    place = tmp_path / f"{id(runs)}"
    place.mkdir(mode=0o700)
    for rounds, kinds in runs:
        assert await told_by(place, *rounds) == kinds


async def test_after_the_clock_was_set_back_it_is_still_known_what_was_sent(tmp_path):
    tmp_path.chmod(0o700)
    sent = sent_in(tmp_path)
    sent.recall(10_000.0)
    sent.add(ALERT)
    for t in (10_000.0, 2_800.0):
        sent.keep([ALERT.condition], t)
    sent.close()
    later = sent_in(tmp_path)
    later.recall(2_900.0)
    assert later.unsent([ALERT], {"tank"}, 2_900.0, 60.0) == []
    later.close()


UNRESTORED = left_behind(mirror_pool(FINISHED))


@rows("first", [running(990.0), frame(UNRESTORED, 990.0)])
async def test_a_pool_that_is_not_restored_is_sent_once(tmp_path, first):
    """The end of its scan may have been seen or not."""
    tmp_path /= first.health.word
    tmp_path.mkdir(mode=0o700)
    since = {"over_since": 1001.0}
    rounds = [[frame(UNRESTORED, t, **since)] for t in (1001.0, 1001.0 + GRACE, 1100.0, 1200.0)]
    assert await told_by(tmp_path, [first], *rounds) == ["not-restored"]
    assert await told_by(tmp_path, [frame(UNRESTORED, 1300.0, **since)]) == []


async def test_what_the_hook_was_not_told_is_sent_after_a_restart(tmp_path):
    tmp_path.chmod(0o700)
    feed = alerting(Fails(9), hook=("page",), sent=sent_in(tmp_path))
    feed.sample = lambda: shown(at(1.0))
    await feed.next()
    await feed.aclose()
    assert await told_by(tmp_path, [at(60.0)]) == ["suspended"]


async def test_what_is_found_after_a_while_is_waited_for(tmp_path):
    tmp_path.chmod(0o700)
    rounds = [[at(t, kstat=None)] for t in (1.0, 1.0 + UNREACHABLE_AFTER)]
    later = [[at(t, kstat=None)] for t in (400.0, 400.0 + UNREACHABLE_AFTER)]
    much_later = [[at(t, kstat=None)] for t in (3000.0, 3000.0 + UNREACHABLE_AFTER)]
    assert await told_by(tmp_path, *rounds) == ["unreachable"]
    assert await told_by(tmp_path, *later) == []
    assert await told_by(tmp_path, *much_later) == ["unreachable"]


async def test_a_watch_that_was_killed_has_kept_what_lasts(tmp_path):
    tmp_path.chmod(0o700)
    sent = sent_in(tmp_path)
    feed = alerting(Tells(), hook=("page",), sent=sent)
    for t in (1.0, 2.0):
        feed.sample = lambda t=t: shown(at(t))
        await feed.next()
        for _ in range(5):
            await asyncio.sleep(0)
    assert sent._store.writer.settle(5)
    # It is not closed, but its lock is gone, as when a process ends.
    sent._store.close()
    assert await told_by(tmp_path, [at(60.0)]) == []


async def test_a_damaged_file_is_told_and_all_is_sent(tmp_path):
    tmp_path.chmod(0o700)
    await told_by(tmp_path, [at(1.0)])
    (file,) = tmp_path.glob("alerts-*.json")
    file.write_text("{")
    teller = Tells()
    feed = alerting(teller, hook=("page",), sent=sent_in(tmp_path))
    feed.sample = lambda: shown(at(60.0))
    update = await feed.next()
    await feed.aclose()
    assert [told["kind"] for _, told in teller.told] == ["suspended"]
    assert "is damaged" in update.notes[-1]
