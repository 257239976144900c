from __future__ import annotations

import asyncio
import io
import queue
import sys
import threading
import time

import pytest

from tests.unit.sources.source_fakes import FakeProcess, FakeSpawner, gone, helper, settle
from zconsole.sources.libzfs.client import CRASHES_ALLOWED, LibzfsReader
from zconsole.sources.libzfs.helper import Helper
from zconsole.sources.libzfs.library import LibraryUnusableError
from zconsole.sources.libzfs.nvlist import NvlistError
from zconsole.sources.libzfs.wire import packed, unpacked
from zconsole.sources.reader import PoolGoneError, ReaderUnusableError, ReadFailedError
from zconsole.sources.runner import DeadlineError, ProcessRunner

READY = packed({"ready": "x"})


class Lines(io.StringIO):
    """Output whose lines a test can wait for."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: queue.Queue[dict] = queue.Queue()

    def write(self, text: str) -> int:
        self.lines.put(unpacked(text.removesuffix("\n")))
        return len(text)


class FakePool:
    def __init__(self, answer, gate=None):
        self.answer, self.gate = answer, gate

    def read(self):
        if self.gate is not None:
            self.gate.wait(30)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def requests(*pools: str) -> io.StringIO:
    return io.StringIO("".join(f"{pool}\n" for pool in pools))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"name": "tank"}, {"config": {"name": "tank"}}),
        (None, {"gone": True}),
        (NvlistError("odd"), {"error": "odd"}),
        (LibraryUnusableError("libzfs_init: no"), {"error": "libzfs_init: no"}),
    ],
)
def test_the_helper_answers_a_request_with_a_line(answer, expected):
    output = Lines()
    Helper(output, lambda name: FakePool(answer)).serve(requests("tank"))
    assert output.lines.get(timeout=30) == {"pool": "tank", **expected}


def test_a_pool_stuck_in_the_kernel_does_not_stop_the_others():
    output, gate = Lines(), threading.Event()
    pools = {"stuck": FakePool({}, gate), "fine": FakePool({"name": "fine"})}
    Helper(output, pools.__getitem__).serve(requests("stuck", "fine", "fine"))
    answers = [output.lines.get(timeout=30)["pool"] for _ in range(2)]
    assert answers == ["fine", "fine"]
    gate.set()
    assert output.lines.get(timeout=30)["pool"] == "stuck"


@pytest.fixture
def device(tmp_path):
    path = tmp_path / "zfs"
    path.touch()
    return path


def reader(device, make) -> tuple[LibzfsReader, FakeSpawner]:
    spawner = FakeSpawner({"helper": make})
    return LibzfsReader(spawner, device=device), spawner


async def test_a_config_comes_back_as_the_raw_form(device):
    source, spawner = reader(device, lambda: helper(lambda pool: {"config": {"name": pool}}))
    assert await source.read("tank", 5) == {"libzfs": {"name": "tank"}}
    assert await source.read("solo", 5) == {"libzfs": {"name": "solo"}}
    assert len(spawner.started) == 1
    assert source.library == "libzfs.so.6"
    await source.aclose()
    assert spawner.started[0].abandoned


@pytest.mark.parametrize(
    ("answer", "error"),
    [({"gone": True}, PoolGoneError), ({"error": "odd"}, ReaderUnusableError)],
)
async def test_what_the_helper_says_becomes_an_error(device, answer, error):
    source, _ = reader(device, lambda: helper(lambda pool: answer))
    with pytest.raises(error):
        await source.read("tank", 5)
    await source.aclose()


async def test_without_the_device_nothing_is_started(tmp_path):
    source, spawner = reader(tmp_path / "absent", lambda: helper(lambda pool: {}))
    with pytest.raises(ReaderUnusableError, match="absent"):
        await source.read("tank", 5)
    assert not spawner.started


async def test_a_helper_without_libzfs_is_unusable_with_its_reason(device):
    process = [packed({"unusable": "no libzfs.so.6 on this machine"})]
    source, _ = reader(device, lambda: FakeProcess(process, ends=True))
    with pytest.raises(ReaderUnusableError, match=r"no libzfs\.so\.6"):
        await source.read("tank", 5)
    await source.aclose()


async def test_a_helper_that_keeps_crashing_is_given_up(device):
    source, spawner = reader(device, lambda: FakeProcess([READY], ends=True))
    for _ in range(CRASHES_ALLOWED):
        with pytest.raises(ReadFailedError, match="ended"):
            await source.read("tank", 5)
    with pytest.raises(ReaderUnusableError, match="keeps ending"):
        await source.read("tank", 5)
    assert len(spawner.started) == CRASHES_ALLOWED + 1


async def test_garbage_from_the_helper_is_a_failed_read(device):
    source, _ = reader(device, lambda: FakeProcess([READY, "garbage"]))
    with pytest.raises(ReadFailedError, match="no answer"):
        await source.read("tank", 5)


async def test_after_a_stuck_call_another_helper_serves_the_other_pools(device):
    def answer(pool):
        return None if pool == "stuck" else {"config": {"name": pool}}

    source, spawner = reader(device, lambda: helper(answer))
    with pytest.raises(DeadlineError) as caught:
        await source.read("stuck", 0.01)
    first = spawner.started[0]
    assert first.abandoned
    assert caught.value.alive()
    assert await source.read("fine", 5) == {"libzfs": {"name": "fine"}}
    assert len(spawner.started) == 2
    first.alive = False
    assert not caught.value.alive()
    await source.aclose()


async def test_a_call_beside_a_stuck_one_is_asked_again_of_the_next_helper(device):
    slow = helper(lambda pool: None)
    quick = helper(lambda pool: {"config": {"name": pool}})
    source, _ = reader(device, iter([slow, quick]).__next__)

    async def stuck():
        with pytest.raises(DeadlineError):
            await source.read("stuck", 0.05)

    _, found = await asyncio.gather(stuck(), source.read("fine", 10))
    assert found == {"libzfs": {"name": "fine"}}
    await source.aclose()


async def test_the_deadline_of_a_call_does_not_count_the_start_of_the_helper(device):
    process = FakeProcess(respond=lambda line: (packed({"pool": line, "gone": True}),))
    source, _ = reader(device, lambda: process)
    reading = asyncio.create_task(source.read("tank", 0.05))
    await asyncio.sleep(0.1)
    process.say(READY)
    with pytest.raises(PoolGoneError):
        await reading
    await source.aclose()


async def test_a_helper_that_never_starts_is_unusable(device):
    source = LibzfsReader(FakeSpawner({"helper": FakeProcess}), device=device, start_deadline=0.01)
    with pytest.raises(ReaderUnusableError, match="does not start"):
        await source.read("tank", 5)


STUCK_HELPER = """
import sys, time
from zconsole.sources.libzfs.wire import packed
print(packed({"ready": "fake"}), flush=True)
for line in sys.stdin:
    while True: time.sleep(60)
"""


async def test_a_real_helper_that_never_answers_delays_neither_read_nor_close(device):
    command = (sys.executable, "-c", STUCK_HELPER)
    source = LibzfsReader(ProcessRunner(), command, device)
    with pytest.raises(DeadlineError) as caught:
        await source.read("tank", 0.1)
    reading = asyncio.create_task(source.read("tank", 60))
    while source.library is None:
        await asyncio.sleep(0)
    began, second = time.monotonic(), source._helper
    await source.aclose()
    reading.cancel()
    assert time.monotonic() - began < 1.0
    await asyncio.wait((reading,))
    await gone(caught.value.alive)
    await gone(second.alive)


async def test_the_helper_module_starts_and_leaves_when_its_input_closes():
    from zconsole.sources.libzfs.client import COMMAND, PACKAGE_ROOT

    process = await ProcessRunner().spawn(COMMAND, cwd=PACKAGE_ROOT)
    async with asyncio.timeout(60):
        hello = unpacked(await process.readline())
        assert hello.keys() <= {"ready", "unusable"}
        process._transport.get_pipe_transport(0).close()
        assert await process.readline() is None
    await gone(lambda: process.alive)
    process.abandon()
    await settle()


@pytest.mark.parametrize("line", ["", "garbage", "{}", packed({})[:-2], "aWdub3JlZA=="])
def test_a_line_that_is_no_answer_is_a_value_error(line):
    with pytest.raises(ValueError, match="no answer"):
        unpacked(line)


def test_every_kind_of_value_comes_back():
    answer = {"pool": "a b", "config": {"guid": 2**64 - 1, "list": [0, 2**63], "path": "/\udcff"}}
    assert unpacked(packed(answer)) == answer
    assert "\n" not in packed(answer)
