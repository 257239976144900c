from __future__ import annotations

import asyncio
import ctypes
import errno
import gc
import itertools
import os
import select
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.table import rows
from tests.unit.zfs.sources.kernel.nvpack import pack, pool, vdev
from tests.unit.zfs.sources.source_fakes import FakeChannel, FakeSpawner, gone, helper, settle
from zconsole.system.async_process import ProcessRunner
from zconsole.system.process import DeadlineError
from zconsole.zfs.sources.kernel.client import COMMAND, CRASHES_ALLOWED, KernelReader
from zconsole.zfs.sources.kernel.helper import (
    AT_ONCE,
    DESTINATION,
    DESTINATION_AT,
    LARGEST,
    POOL_STATS,
    RECORD,
    Answers,
    Helper,
    KernelPool,
    encoded,
    requested,
    requests,
)
from zconsole.zfs.sources.kernel.nvlist import NvlistError
from zconsole.zfs.sources.reader import PoolGoneError, ReaderUnusableError, ReadFailedError

READY = encoded({"ready": "x"})
NOTHING: dict[str, object] = {}


class Pipes:
    """A helper between two pipes, and its answers."""

    def __init__(self, open_pool) -> None:
        self._theirs_in, self._ask = os.pipe()
        self._hear, self._theirs_out = os.pipe()
        self._answers = Answers()
        self.found: list[dict] = []
        self._before = set(threading.enumerate())
        self.left = threading.Event()
        helper = Helper(self._theirs_in, self._theirs_out, lambda pool: open_pool(pool).read)
        threading.Thread(target=helper.serve, args=(self.left.set,), daemon=True).start()

    def ask(self, *pools: str) -> None:
        for records in requests(pools):
            os.write(self._ask, records)

    def answer(self) -> dict:
        while not self.found:
            self.found += self._answers.feed(os.read(self._hear, 65536))
        return self.found.pop(0)

    def end(self) -> None:
        if not self.left.is_set():
            os.close(self._ask)
        assert self.left.wait(30)

    def close(self) -> None:
        self.end()
        for thread in set(threading.enumerate()) - self._before:
            thread.join(30)
        for end in (self._theirs_in, self._hear, self._theirs_out):
            os.close(end)


@pytest.fixture
def served():
    """Factory of helpers for fake pools, by name."""
    made: list[Pipes] = []

    def make(open_pool) -> Pipes:
        made.append(Pipes(open_pool))
        return made[-1]

    yield make
    for pipes in made:
        pipes.close()


class FakePool:
    def __init__(self, answer, gate=None):
        self.answer, self.gate = answer, gate
        self.entered = threading.Event()

    def read(self):
        self.entered.set()
        if self.gate is not None:
            self.gate.wait(30)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"name": "tank"}, {"config": {"name": "tank"}}),
        (None, {"gone": True}),
        (NvlistError("odd"), {"error": "odd"}),
        (PermissionError(13, "Permission denied"), {"error": "/dev/zfs: Permission denied"}),
    ],
)
def test_the_helper_answers_a_request(served, answer, expected):
    pipes = served(lambda name: FakePool(answer))
    pipes.ask("tank")
    assert pipes.answer() == {"pool": "tank", **expected}


def test_a_pool_stuck_in_the_kernel_stops_neither_the_others_nor_the_end(served):
    gate = threading.Event()
    pools = {
        "stuck": FakePool(NOTHING, gate),
        "too": FakePool(NOTHING, gate),
        "fine": FakePool(NOTHING),
    }
    pipes = served(pools.__getitem__)
    pipes.ask("fine", "stuck", "fine", "too", "fine")
    assert pools["stuck"].entered.wait(30)
    pipes.ask("")
    assert pipes.answer()["pool"] == "fine"
    assert pools["too"].entered.wait(30)
    pipes.ask("")
    assert [pipes.answer()["pool"] for _ in range(2)] == ["fine", "fine"]
    pipes.ask("fine")
    assert pipes.answer()["pool"] == "fine"
    gate.set()
    assert {pipes.answer()["pool"] for _ in range(2)} == {"stuck", "too"}


def test_what_is_asked_for_at_once_is_answered_by_one_thread_in_one_write(served):
    threads = set()

    class Named(FakePool):
        def read(self):
            threads.add(threading.get_ident())
            return NOTHING

    pipes = served(lambda name: Named(NOTHING))
    pipes.ask("a", "b", "c", "d")
    assert [pipes.answer()["pool"]] == ["a"]
    assert len(pipes.found) == 3
    assert len(threads) == 1


def test_the_helper_leaves_at_the_end_whatever_is_stuck(served):
    gate = threading.Event()
    pipes = served({"stuck": FakePool(NOTHING, gate)}.__getitem__)
    pipes.ask("stuck")
    pipes.end()
    gate.set()
    assert pipes.answer()["pool"] == "stuck"


def test_a_pool_is_read_by_one_thread_at_a_time(served):
    class Counted(FakePool):
        inside = most = 0

        def read(self):
            self.inside += 1
            self.most = max(self.most, self.inside)
            time.sleep(0.01)
            self.inside -= 1
            return NOTHING

    pool = Counted(NOTHING)
    pipes = served(lambda name: pool)
    pipes.ask("tank", "tank", "tank")
    assert [pipes.answer()["pool"] for _ in range(3)] == ["tank"] * 3
    assert pool.most == 1


def reader(make) -> tuple[KernelReader, FakeSpawner]:
    spawner = FakeSpawner({"helper": make})
    return KernelReader(spawner), spawner


async def test_a_config_comes_back_as_the_raw_form():
    source, spawner = reader(lambda: helper(lambda pool: {"config": {"name": pool}}))
    assert await source.read("tank", 5) == {"libzfs": {"name": "tank"}}
    assert await source.read("solo", 5) == {"libzfs": {"name": "solo"}}
    assert len(spawner.started) == 1
    await source.aclose()
    assert spawner.started[0].abandoned


async def test_pools_are_asked_for_in_one_write():
    source, spawner = reader(lambda: helper(lambda pool: {"config": {"name": pool}}))
    await source.read("a", 30)  # starts the helper
    await asyncio.gather(*(source.read(pool, 30) for pool in "abc"))
    assert [[*requested(data)] for data in spawner.started[0].written] == [["a"], ["a", "b", "c"]]
    await source.aclose()


async def test_the_helper_is_reminded_of_those_behind_a_pool_that_is_stuck():
    class Stuck(FakeChannel):
        def write(self, data: bytes) -> None:
            super().write(data)
            if not any(requested(data)):
                self.say(encoded({"pool": "b", "gone": True}))

    source, _ = reader(lambda: Stuck([READY]))
    stuck = asyncio.create_task(source.read("a", 30))
    with pytest.raises(PoolGoneError):
        await source.read("b", 30)
    stuck.cancel()
    await source.aclose()


@pytest.mark.parametrize(
    ("answer", "error"),
    [({"gone": True}, PoolGoneError), ({"error": "odd"}, ReaderUnusableError)],
)
async def test_what_the_helper_says_becomes_an_error(answer, error):
    source, _ = reader(lambda: helper(lambda pool: answer))
    with pytest.raises(error):
        await source.read("tank", 5)
    await source.aclose()


async def test_a_helper_that_cannot_ask_the_kernel_is_unusable_with_its_reason():
    process = [encoded({"unusable": "/dev/zfs: Permission denied"})]
    source, _ = reader(lambda: FakeChannel(process, ends=True))
    with pytest.raises(ReaderUnusableError, match="Permission denied"):
        await source.read("tank", 5)
    await source.aclose()


async def test_a_helper_that_keeps_crashing_is_given_up():
    source, spawner = reader(lambda: FakeChannel([READY], ends=True))
    for _ in range(CRASHES_ALLOWED):
        with pytest.raises(ReadFailedError, match="exited"):
            await source.read("tank", 5)
    with pytest.raises(ReaderUnusableError, match="keeps exiting"):
        await source.read("tank", 5)
    assert len(spawner.started) == CRASHES_ALLOWED + 1


def crashing_for(crashes) -> tuple[KernelReader, FakeSpawner]:
    """Return a reader whose helper ends when asked for a pool for which ``crashes`` is true."""

    def respond(pool: str) -> tuple[bytes]:
        return (b"" if crashes(pool) else encoded({"pool": pool, "config": {"name": pool}}),)

    return reader(lambda: FakeChannel([READY], respond))


async def test_crashes_after_each_of_which_the_pool_was_read_do_not_add_up():
    """Otherwise three crashes in a year would disable the best reader for good."""
    turns = itertools.cycle((True, False))
    source, spawner = crashing_for(lambda pool: next(turns))
    for _ in range(CRASHES_ALLOWED + 1):
        with pytest.raises(ReadFailedError, match="exited"):
            await source.read("tank", 5)
        assert await source.read("tank", 5) == {"libzfs": {"name": "tank"}}
    assert len(spawner.started) == CRASHES_ALLOWED + 2
    await source.aclose()


async def test_one_crash_is_one_however_many_pools_were_asked_for():
    """With three pools, the first crash disabled the reader."""
    source, _ = crashing_for(lambda pool: True)
    reads = (source.read(f"p{n}", 5) for n in range(CRASHES_ALLOWED + 1))
    found = await asyncio.gather(*reads, return_exceptions=True)
    assert {type(each) for each in found} == {ReadFailedError}
    await source.aclose()


async def test_a_pool_that_always_crashes_the_helper_gives_it_up_although_others_are_read():
    source, _ = crashing_for(lambda pool: pool == "bad")
    for _ in range(CRASHES_ALLOWED):
        with pytest.raises(ReadFailedError, match="exited"):
            await source.read("bad", 5)
        assert await source.read("fine", 5) == {"libzfs": {"name": "fine"}}
    with pytest.raises(ReaderUnusableError, match="keeps exiting"):
        await source.read("bad", 5)
    await source.aclose()


async def test_garbage_from_the_helper_is_a_failed_read_and_ends_it():
    source, spawner = reader(lambda: FakeChannel([READY, b"garbage"]))
    with pytest.raises(ReadFailedError, match="no answer"):
        await source.read("tank", 5)
    assert all(channel.abandoned for channel in spawner.started)


async def test_after_a_stuck_call_another_helper_serves_the_other_pools():
    def answer(pool):
        return None if pool == "stuck" else {"config": {"name": pool}}

    source, spawner = reader(lambda: helper(answer))
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


async def test_a_call_beside_a_stuck_one_is_asked_again_of_the_next_helper():
    slow = helper(lambda pool: None)
    quick = helper(lambda pool: {"config": {"name": pool}})
    source, _ = reader(iter([slow, quick]).__next__)

    async def stuck():
        with pytest.raises(DeadlineError):
            await source.read("stuck", 0.05)

    _, found = await asyncio.gather(stuck(), source.read("fine", 10))
    assert found == {"libzfs": {"name": "fine"}}
    await source.aclose()


@pytest.mark.slow
async def test_the_deadline_of_a_call_does_not_count_the_start_of_the_helper():
    process = FakeChannel(respond=lambda line: (encoded({"pool": line, "gone": True}),))
    source, _ = reader(lambda: process)
    reading = asyncio.create_task(source.read("tank", 0.5))
    await asyncio.sleep(0.7)
    process.say(READY)
    with pytest.raises(PoolGoneError):
        await reading
    await source.aclose()


async def test_a_helper_that_never_starts_is_unusable():
    source = KernelReader(FakeSpawner({"helper": FakeChannel}), start_deadline=0.01)
    with pytest.raises(ReaderUnusableError, match="does not start"):
        await source.read("tank", 5)


def refused():
    raise OSError(errno.EAGAIN, "Resource temporarily unavailable")


@rows(
    "start, error",
    [
        (FakeChannel, ReaderUnusableError),
        (lambda: FakeChannel([encoded({"unusable": "Permission denied"})]), ReaderUnusableError),
        (lambda: FakeChannel(ends=True), ReadFailedError),
        (refused, DeadlineError),
    ],
)
async def test_pools_that_wait_for_one_start_share_its_failure(start, error):
    """Four pools, one after the other, waited two minutes for a start that hung."""
    spawner = FakeSpawner({"helper": start})
    source = KernelReader(spawner, start_deadline=0.05)
    reads = (source.read(f"p{n}", 5) for n in range(4))
    found = await asyncio.gather(*reads, return_exceptions=True)
    assert {type(each) for each in found} == {error}
    assert len(spawner.asked) == 1
    with pytest.raises(error):
        await source.read("p0", 5)
    assert len(spawner.asked) == 2
    assert all(channel.abandoned for channel in spawner.started)
    await source.aclose()


async def test_a_pool_that_is_no_longer_waited_for_leaves_the_start_to_the_others():
    process = FakeChannel(respond=lambda pool: (encoded({"pool": pool, "gone": True}),))
    source, spawner = reader(lambda: process)
    first, second = (asyncio.create_task(source.read(pool, 30)) for pool in "ab")
    await settle()
    first.cancel()
    await settle()
    process.say(READY)
    with pytest.raises(PoolGoneError):
        await second
    assert first.cancelled()
    assert len(spawner.started) == 1
    await source.aclose()


async def test_closing_ends_a_start_without_a_word(caplog):
    source, spawner = reader(FakeChannel)
    reading = asyncio.create_task(source.read("a", 30))
    await settle()
    reading.cancel()
    await source.aclose()
    await settle()
    gc.collect()
    assert spawner.started[0].abandoned
    assert {each for each in asyncio.all_tasks() if not each.done()} == {asyncio.current_task()}
    assert caplog.text == ""


STUCK_HELPER = """
import os, time
from zconsole.zfs.sources.kernel.helper import encoded
os.write(1, encoded({"ready": "fake"}))
while True: time.sleep(60)
"""


@pytest.mark.slow
async def test_a_real_helper_that_never_answers_delays_neither_read_nor_close():
    command = (sys.executable, "-c", STUCK_HELPER)
    source = KernelReader(ProcessRunner(), command)
    with pytest.raises(DeadlineError) as caught:
        await source.read("tank", 0.1)
    reading = asyncio.create_task(source.read("tank", 60))
    while source._helper is None or not source._helper.serving:
        await asyncio.sleep(0)
    began, second = time.monotonic(), source._helper
    await source.aclose()
    reading.cancel()
    assert time.monotonic() - began < 30
    await asyncio.wait((reading,))
    await gone(caught.value.alive)
    await gone(second.alive)


async def test_the_helper_module_starts_and_leaves_when_its_input_ends():
    done = await ProcessRunner().run(COMMAND, 60)
    ready, unusable = "ready" in done.stdout, "unusable" in done.stdout
    assert (ready, unusable) == (done.returncode == 0, done.returncode == 1)


@rows("said", [b"garbage!", b"\0\0\0\0", encoded({})[:4] + b"!!", b"\2\0\0\0[]"])
def test_what_is_no_answer_is_a_value_error(said):
    with pytest.raises(ValueError, match="no answer"):
        list(Answers().feed(said))


def test_every_kind_of_value_comes_back_however_it_is_cut():
    answer = {"pool": "a b", "config": {"guid": 2**64 - 1, "list": [0, 2**63], "path": "/\udcff"}}
    whole = encoded(answer) * 2
    answers = Answers()
    parts = [whole[at : at + 7] for at in range(0, len(whole), 7)]
    assert [each for part in parts for each in answers.feed(part)] == [answer, answer]


@rows("pools", [["tank"], ["a b", "/\udcff", "x" * 255], ["b"] * 2 * AT_ONCE, ["c"] * 40, []])
def test_requests_are_records_of_one_length_in_pieces_a_pipe_takes_whole(pools):
    pieces = list(requests(pools))
    assert all(len(piece) <= select.PIPE_BUF and not len(piece) % RECORD for piece in pieces)
    assert list(requested(b"".join(pieces))) == pools


def test_an_empty_request_asks_for_no_pool():
    assert list(requested(b"".join(requests(["", "tank"])))) == ["tank"]


class Kernel:
    """Fakes ``zfs_ioc_pool_stats`` and ``put_nvlist`` (module/zfs/zfs_ioctl.c)."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = pool(vdev(7))
        self.error = self.calls = 0
        self.claims: int | None = None

    def __call__(self, device: int, request: int, command: bytearray) -> int:
        self.calls += 1
        assert request == POOL_STATS
        assert bytes(command[:4096]).rstrip(b"\0") == b"tank"
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        data = bytes(pack(self.config))
        where, room = DESTINATION.unpack_from(command, DESTINATION_AT)
        DESTINATION.pack_into(command, DESTINATION_AT, where, self.claims or len(data))
        if self.claims or len(data) > room:
            raise OSError(errno.ENOMEM, "")
        ctypes.memmove(where, data, len(data))
        return 0


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


@pytest.fixture
def tank(kernel: Kernel) -> KernelPool:
    return KernelPool("tank", -1, kernel)


def test_the_config_is_what_the_kernel_packed(kernel: Kernel, tank: KernelPool) -> None:
    for guid in (7, 8):
        kernel.config = pool(vdev(guid))
        found = tank.read()
        assert found is not None
        assert (found["name"], found["vdev_tree"]["children"][0]["guid"]) == ("tank", guid)
    assert kernel.calls == 2


def test_the_buffer_grows_with_the_config_and_stays(kernel: Kernel, tank: KernelPool) -> None:
    kernel.config = pool(*(vdev(100 + number) for number in range(300)))
    assert tank.read() is not None
    assert tank.read() is not None
    assert kernel.calls == 3


@pytest.mark.parametrize(
    ("state", "calls"),
    [
        ({"error": errno.EACCES}, 1),
        ({"error": errno.EIO}, 1),
        ({"claims": LARGEST + 1}, 1),
        ({"claims": 1 << 20}, 3),  # still too small with the room it asked for
    ],
    ids=str,
)
def test_what_the_kernel_refuses_is_an_error(
    kernel: Kernel, tank: KernelPool, state: dict[str, int], calls: int
) -> None:
    vars(kernel).update(state)
    with pytest.raises(OSError, match=r"\w"):
        tank.read()
    assert kernel.calls == calls
    vars(kernel).update(dict.fromkeys(state, 0))
    assert tank.read() is not None


def test_a_pool_that_the_kernel_does_not_know_is_gone_until_it_does(
    kernel: Kernel, tank: KernelPool
) -> None:
    kernel.error = errno.ENOENT
    assert tank.read() is None
    kernel.error = 0
    assert tank.read() is not None


def test_another_device_gives_no_config() -> None:
    with Path(os.devnull).open("rb") as device, pytest.raises(OSError, match="ioctl"):
        KernelPool("tank", device.fileno()).read()


def test_what_is_no_config_is_an_error() -> None:
    with pytest.raises(NvlistError):
        KernelPool("tank", -1, lambda *_: 0).read()


async def test_an_answer_that_has_come_counts_however_late_the_console_looks():
    channel = helper(lambda pool: None)
    source = KernelReader(FakeSpawner({"helper": lambda: channel}))
    reading = asyncio.create_task(source.read("tank", 0.05))
    while not channel.written:
        await asyncio.sleep(0)
    channel.say(encoded({"pool": "tank", "config": {"name": "tank"}}))
    time.sleep(0.1)  # noqa: ASYNC251 - as one that was stopped and goes on
    assert await reading == {"libzfs": {"name": "tank"}}
    await source.aclose()
