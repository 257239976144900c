"""The way a pool is read, and the message if none works."""

from __future__ import annotations

import errno
import os
from functools import partial
from types import SimpleNamespace

import pytest

from tests.table import rows
from tests.unit.zfs.sources.sampled import JSON, PLAIN, config_of, source
from tests.unit.zfs.sources.source_fakes import (
    HANG,
    TEXT,
    FakeChannel,
    FakeProcess,
    FakeSpawner,
    helper,
    printed,
    settle,
)
from zconsole.zfs.sources.kernel.helper import encoded
from zconsole.zfs.sources.reader import FallbackReader, ReaderOption


@pytest.mark.parametrize(
    ("hello", "reason"),
    [
        ({"unusable": "/dev/zfs: Permission denied"}, "/dev/zfs: Permission denied"),
        ({"ready": "/dev/zfs"}, "vdev_stats has 3 entries"),
    ],
)
async def test_without_libzfs_json_takes_over_and_says_why(tmp_path, hello, reason):
    def answer(line):
        return (encoded({"pool": line, "error": reason}),)

    makers = {"helper": lambda: FakeChannel([encoded(hello)], answer), "zpool": FakeProcess}
    made = source(tmp_path, spawn=FakeSpawner(makers))
    (raw,) = await made.sample()
    assert raw["source"] == "json"
    assert made.capabilities.name == "json"
    assert made.capabilities.reason == f"libzfs: {reason}"
    await made.aclose()


async def test_a_way_that_was_given_up_is_closed_too():
    closed: list[str] = []

    def made(name):
        async def aclose():
            closed.append(name)

        return SimpleNamespace(name=name, aclose=aclose)

    ways = FallbackReader([ReaderOption(name, partial(made, name)) for name in ("libzfs", "json")])
    ways.give_up(ways.reader, "it hangs")
    assert ways.reader.name == "json"
    await ways.aclose()
    assert closed == ["libzfs", "json"]


async def test_an_old_zpool_is_read_as_text_with_the_reason(tmp_path):
    makers = {"zpool": FakeProcess}
    made = source(tmp_path, answers=PLAIN, spawn=FakeSpawner(makers), version="2.1.11-1")
    (raw,) = await made.sample()
    assert (raw["source"], raw["text"]) == ("text", TEXT)
    assert "zpool 2.1.11 has no JSON" in made.capabilities.reason
    await made.aclose()


@pytest.mark.parametrize("prefer", ["json", "text"])
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (HANG, "no answer"),
        (printed("", 1, "cannot open 'tank': no such pool\n"), "no longer imported"),
        (printed("", 1, "internal error: out of memory\n"), "internal error: out of memory"),
        (printed("", 139), "exit status 139"),
    ],
)
async def test_a_failing_zpool_is_a_problem_and_no_exception(tmp_path, prefer, answer, problem):
    made = source(tmp_path, answers={("zpool",): answer}, prefer=prefer)
    for _ in range(2):
        (raw,) = await made.sample()
        assert problem in raw["problem"]
        assert not {"libzfs", "status", "text"} & raw.keys()
    await made.aclose()


@pytest.mark.parametrize("stdout", ["", "garbage", '{"pools": {"tank": {"name', "[1]", "{}"])
async def test_damaged_json_is_a_problem(tmp_path, stdout):
    made = source(tmp_path, answers={("zpool",): printed(stdout)}, prefer="json")
    (raw,) = await made.sample()
    assert raw["problem"].startswith("zpool status printed no")
    await made.aclose()


async def test_a_hung_zpool_is_not_started_again_before_it_is_gone(tmp_path):
    made = source(tmp_path, answers={("zpool",): HANG}, prefer="text")
    runner = made._system.runner
    for _ in range(3):
        await made.sample()
    assert len([argv for argv in runner.asked if argv[1] == "status"]) == 1
    runner.stuck = False
    await made.sample()
    assert len([argv for argv in runner.asked if argv[1] == "status"]) == 2
    await made.aclose()


class Starts:
    """Starts helpers, unless the system refuses with ``error``."""

    error: OSError | None = None

    def __init__(self):
        self.spawner = FakeSpawner({"helper": self._helper, "zpool": FakeProcess})

    def _helper(self):
        if self.error is not None:
            raise self.error
        return helper(config_of)

    async def end_helpers(self):
        for each in self.spawner.started:
            if isinstance(each, FakeChannel):
                each.say(b"")
        await settle()


PASSING = [errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM]
LASTING = [errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ENOEXEC]
WAYS = {"libzfs": JSON, "json": JSON, "text": PLAIN}


@rows("way, number", [(way, number) for way in WAYS for number in PASSING])
async def test_a_moment_without_processes_or_memory_gives_no_way_of_reading_up(
    tmp_path, way, number
):
    starts = Starts()
    made = source(tmp_path, answers=WAYS[way], prefer=way, spawn=starts.spawner)
    runner = made._system.runner
    assert (await made.sample())[0]["source"] == way
    starts.error = OSError(number, os.strerror(number))
    runner.answers = {("zpool",): starts.error}
    await starts.end_helpers()
    (raw,) = await made.sample()
    assert os.strerror(number) in raw["problem"]
    starts.error, runner.answers = None, WAYS[way]
    assert (await made.sample())[0]["source"] == way
    await made.aclose()


@rows("number", LASTING)
async def test_a_helper_that_can_never_be_started_is_given_up(tmp_path, number):
    starts = Starts()
    starts.error = OSError(number, os.strerror(number))
    made = source(tmp_path, spawn=starts.spawner)
    assert (await made.sample())[0]["source"] == "json"
    assert os.strerror(number) in made.capabilities.reason
    await made.aclose()


@rows("number", LASTING)
async def test_a_zpool_that_can_never_be_started_is_given_up(tmp_path, number):
    error = OSError(number, os.strerror(number))
    made = source(tmp_path, answers={("zpool",): error}, prefer="json")
    (raw,) = await made.sample()
    assert raw["problem"].startswith("cannot read the pool: ")
    await made.aclose()


@rows("way", ["libzfs", "json", "text"])
@rows("failure", [OSError(errno.ENOENT, "missing"), printed("", 2, "invalid option\n")])
async def test_a_zpool_that_is_back_is_read_again(tmp_path, way, failure):
    """While its package is replaced, it may be missing or not fit."""
    starts = Starts()
    made = source(
        tmp_path, {"tank": "ONLINE", "x": "ONLINE"}, WAYS[way], starts.spawner, prefer=way
    )
    runner = made._system.runner
    await made.sample()
    starts.error = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    runner.answers = {("zpool",): failure}
    await starts.end_helpers()
    problems = set[str]()
    for _ in range(3):
        problems.update(raw["problem"] for raw in await made.sample())
        assert made.capabilities.name == "none"
    (problem,) = problems
    assert problem.startswith("cannot read the pool: ")
    runner.answers = PLAIN
    assert [raw["source"] for raw in await made.sample()] == ["text", "text"]
    assert "text:" not in made.capabilities.reason
    await made.aclose()


async def test_no_zpool_at_all_is_a_problem_with_every_reason(tmp_path):
    made = source(tmp_path, answers={}, spawn=FakeSpawner({}))
    (raw,) = await made.sample()
    assert "cannot read the pool" in raw["problem"]
    assert "libzfs" in raw["problem"]
    await made.aclose()
