from __future__ import annotations

import asyncio
import errno

import pytest

from tests.table import rows
from tests.unit.zfs.sources.source_fakes import FakeProcess, FakeSpawner, settle
from zconsole.system.host import Clocks
from zconsole.zfs.sources import events
from zconsole.zfs.sources.events import BURST, KEPT, EventFollower, describe_event, parse_event

FROM_1970 = Clocks(wall=lambda: 0.0, steady=lambda: 0.0)
PRINTED = """\
Nov 20 2026 11:26:48.196001041\tresource.fs.zfs.statechange
        version = 0x0
        class = "resource.fs.zfs.statechange"
        pool = "solo"
        pool_guid = 0x259e374c896452ff
        vdev_guid = 0x1
        vdev_state = "ONLINE" (0x7)
        vdev_path = "/dev/disk/by-id/virtio-LABDISK4-part1"
        vdev_laststate = "OFFLINE" (0x2)
        time = 0x6b002e78 0xbaebd11\x20
        eid = 0x5e
"""


def event(name: str, **payload: str) -> dict[str, str]:
    return {"class": name, "time": "0x64 0x0", "pool": "tank", **payload}


def test_a_printed_event_becomes_one_line_in_words():
    assert describe_event(parse_event(PRINTED.splitlines())) == {
        "t": pytest.approx(0x6B002E78 + 0xBAEBD11 / 1e9),
        "name": "statechange",
        "text": "virtio-LABDISK4 went from OFFLINE to ONLINE",
        "severity": "notice",
        "vdev": "virtio-LABDISK4",
    }


@rows(
    ("payload", "text", "severity"),
    [
        (
            event("sysevent.fs.zfs.resilver_start", resilver_type="sequential"),
            "resilver start (sequential)",
            "notice",
        ),
        (
            event("ereport.fs.zfs.checksum", vdev_path="/dev/sdb1", zio_delay="0x3f6128"),
            "checksum on sdb1",
            "warning",
        ),
        (
            event("ereport.fs.zfs.delay", vdev_path="/dev/sdb1", zio_delay="0x77359400"),
            "delay on sdb1 (2 s)",
            "warning",
        ),
        (event("ereport.fs.zfs.vdev.open_failed"), "vdev open failed", "error"),
        (event("sysevent.fs.zfs.brand_new_class"), "brand new class", "info"),
        (
            event(
                "sysevent.fs.zfs.history_event",
                history_internal_name="scan aborted, restarting",
                history_internal_str="errors=0",
            ),
            "scan aborted, restarting errors=0",
            "info",
        ),
    ],
)
def test_words_and_severity(payload, text, severity):
    found = describe_event(payload)
    assert (found["text"], found["severity"], found["t"]) == (text, severity, 100.0)


@rows(
    "payload",
    [
        event("sysevent.fs.zfs.config_sync"),
        event("sysevent.fs.zfs.history_event", history_internal_name="set"),
        {"class": "sysevent.fs.zfs.scrub_start"},
        {"class": "sysevent.fs.zfs.scrub_start", "time": "soon"},
        {"class": "sysevent.fs.zfs.scrub_start", "time": f"0x{'f' * 400} 0x0"},
        {"class": "sysevent.fs.zfs.scrub_start", "time": "-1 0x0"},
        {},
    ],
)
def test_noise_and_damage_are_left_out(payload):
    assert describe_event(payload) is None


def lines(name: str, t: int = 100, pool: str = "tank", path: str = "/dev/sda1") -> list[str]:
    payload = [f'class = "{name}"', f'pool = "{pool}"', f"time = {t:#x} 0x0"]
    payload += [f'vdev_path = "{path}"']
    return [f"Nov 20 2026 11:26:48.1\t{name}", *(f"        {each}" for each in payload), ""]


async def following(printed: list[str], since: float = 0.0) -> EventFollower:
    spawner = FakeSpawner({"zpool": lambda: FakeProcess(printed)})
    follower = EventFollower(spawner, Clocks(wall=lambda: since, steady=lambda: 0.0))
    follower.start()
    await settle()
    return follower


async def test_events_go_to_their_pool_once_and_the_backlog_to_nobody():
    old = lines("ereport.fs.zfs.io", 99)
    new = lines("ereport.fs.zfs.io", 100)
    other = lines("ereport.fs.zfs.data", 101, "solo")
    follower = await following([*old, *new, *other], since=100)
    assert [each["name"] for each in follower.collect("tank")] == ["io"]
    assert [each["name"] for each in follower.collect("solo")] == ["data"]
    assert follower.collect("tank") == []
    follower.close()


async def test_events_after_the_clock_was_set_back_are_told():
    now = [7200.0, 50.0]
    process = FakeProcess(lines("ereport.fs.zfs.io", 7199))
    clocks = Clocks(wall=lambda: now[0], steady=lambda: now[1])
    follower = EventFollower(FakeSpawner({"zpool": lambda: process}), clocks)
    follower.start()
    await settle()
    now[:] = 10.0, 60.0
    process.say(*lines("ereport.fs.zfs.data", 5))
    await settle()
    assert [each["name"] for each in follower.collect("tank")] == ["data"]
    follower.close()


async def test_a_storm_is_one_event_with_a_count():
    follower = await following(lines("ereport.fs.zfs.io") * 1000 + lines("ereport.fs.zfs.data"))
    io, data = follower.collect("tank")
    assert io["text"] == f"io on sda1 ({BURST} times or more)"
    assert data["text"] == "data on sda1"
    follower.close()


async def test_a_few_repeats_are_counted_exactly():
    follower = await following(lines("ereport.fs.zfs.checksum") * 3)
    (found,) = follower.collect("tank")
    assert found["text"] == "checksum on sda1 (3 times)"
    follower.close()


async def test_what_nobody_fetches_does_not_grow_for_ever():
    printed = [
        each
        for index in range(KEPT * 2)
        for each in lines(f"ereport.fs.zfs.class{index}", path=f"/dev/sd{index}")
    ]
    follower = await following(printed)
    assert len(follower.collect("tank")) == KEPT
    follower.close()


async def test_without_the_command_there_are_no_events():
    follower = EventFollower(FakeSpawner({}), FROM_1970)
    follower.start()
    await asyncio.sleep(0)
    assert follower.collect("tank") == []
    follower.close()


async def test_a_command_that_cannot_be_started_for_a_moment_is_followed_later(monkeypatch):
    monkeypatch.setattr(events, "RESTART_AFTER", 0.0)
    refused = [OSError(errno.EAGAIN, "Resource temporarily unavailable")] * 2
    first = FakeProcess(lines("ereport.fs.zfs.io", 100), ends=True)
    second = FakeProcess(lines("ereport.fs.zfs.io", 101))
    outcomes = iter([refused[0], first, refused[1], second])

    def start():
        outcome = next(outcomes)
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    follower = EventFollower(FakeSpawner({"zpool": start}), FROM_1970)
    follower.start()
    for _ in range(4):
        await settle()
    (found,) = follower.collect("tank")
    assert found["text"] == "io on sda1 (2 times)"
    follower.close()


async def test_a_command_that_was_killed_is_started_anew_and_nothing_is_told_twice(monkeypatch):
    monkeypatch.setattr(events, "RESTART_AFTER", 0.0)
    first, second = (lines("ereport.fs.zfs.io", t) for t in (100, 101))
    cut = [*first, *second[:-2]]
    processes = iter([FakeProcess(cut, ends=True), FakeProcess([*first, *second])])
    spawner = FakeSpawner({"zpool": lambda: next(processes)})
    follower = EventFollower(spawner, FROM_1970)
    follower.start()
    await settle()
    (found,) = follower.collect("tank")
    assert found["text"] == "io on sda1 (2 times)"
    follower.close()
