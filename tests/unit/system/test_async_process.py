from __future__ import annotations

import asyncio
import os
import sys
import time

import pytest

from tests.unit.zfs.sources.source_fakes import gone, settle
from zconsole.system import async_process
from zconsole.system.async_process import LastingRunner, ProcessRunner
from zconsole.system.process import DeadlineError, find_command, run_blocking, zfs_environment


@pytest.mark.parametrize("runner", [ProcessRunner, LastingRunner])
async def test_a_command_gives_its_output_and_status(runner):
    code = "import os, sys; os.write(1, b'\\xff'); print('err', file=sys.stderr); sys.exit(3)"
    argv = (sys.executable, "-c", code)
    done = await runner().run(argv, 30)
    assert (done.returncode, done.stdout, done.stderr) == (3, "\udcff", "err\n")
    assert run_blocking(argv, 30) == done
    with pytest.raises(FileNotFoundError):
        await runner().run(("no-such-command-anywhere",), 30)


async def test_a_command_that_does_not_end_is_killed_and_watched_until_it_is_gone():
    with pytest.raises(DeadlineError) as caught:
        await ProcessRunner().run((sys.executable, "-c", "import time; time.sleep(60)"), 0.01)
    await gone(caught.value.alive)


async def test_a_command_that_acts_goes_on_when_time_is_up(tmp_path):
    code = "import sys; sys.stdin = open(sys.argv[1]); sys.stdin.read(); print('went on')"
    os.mkfifo(tmp_path / "go")
    with pytest.raises(DeadlineError) as caught:
        await LastingRunner().run((sys.executable, "-c", code, str(tmp_path / "go")), 0.01)
    assert caught.value.alive()
    (tmp_path / "go").write_text("")
    await gone(caught.value.alive)


async def test_a_command_that_acts_goes_on_when_nobody_waits_for_it(tmp_path):
    code = "import sys; open(sys.argv[1]).readline(); open(sys.argv[2], 'w').write('went on')"
    os.mkfifo(tmp_path / "go")
    go = os.open(tmp_path / "go", os.O_RDWR)
    argv = (sys.executable, "-c", code, str(tmp_path / "go"), str(tmp_path / "done"))
    waiting = asyncio.create_task(LastingRunner().run(argv, 30))
    await settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    os.write(go, b"\n")
    async with asyncio.timeout(30):
        while not (tmp_path / "done").exists() or not (tmp_path / "done").read_text():
            await asyncio.sleep(0)
    os.close(go)  # not earlier: data in a pipe is lost with its last open end


async def test_a_long_lived_process_talks_in_lines_until_it_is_abandoned():
    code = "import sys\nfor line in sys.stdin: print('got', line, end='', flush=True)"
    process = await ProcessRunner().spawn((sys.executable, "-c", code))
    process.write("one")
    process.write("two")
    assert [await process.readline(), await process.readline()] == ["got one", "got two"]
    process.abandon()
    assert await process.readline() is None
    assert await process.readline() is None
    await gone(lambda: process.alive)


class Ears:
    """Collects the output of a process as bytes."""

    def __init__(self) -> None:
        self.said = bytearray()
        self.ended = asyncio.Event()

    def hear(self, data: memoryview) -> None:
        self.said += data
        if not data:
            self.ended.set()

    async def until(self, count: int) -> bytes:
        async with asyncio.timeout(30):
            while len(self.said) < count:
                await asyncio.sleep(0)
        return bytes(self.said)


ECHO = "import os\nwhile data := os.read(0, 65536): os.write(1, data)"


async def test_a_long_lived_process_talks_in_bytes_until_it_is_abandoned():
    ears = Ears()
    process = await ProcessRunner().connect((sys.executable, "-c", ECHO), ears.hear)
    process.write(b"one\0")
    process.write(b"two")
    assert await ears.until(7) == b"one\0two"
    process.abandon()
    process.write(b"lost")
    process.abandon()
    await gone(lambda: process.alive)
    assert not ears.ended.is_set()


@pytest.mark.slow
async def test_an_abandoned_process_is_killed_before_it_can_end_by_itself(tmp_path, monkeypatch):
    # The transport waited for a process that had ended in between: asyncio then warned on stderr.
    ears, close = Ears(), os.close
    code = f"{ECHO}\nopen({str(tmp_path / 'ended')!r}, 'w')"
    process = await ProcessRunner().connect((sys.executable, "-c", code), ears.hear)
    process.write(b"one")
    assert await ears.until(3) == b"one"

    def interrupted(end: int) -> None:
        close(end)
        time.sleep(0.2)

    with monkeypatch.context() as patched:
        patched.setattr("zconsole.system.async_process.os.close", interrupted)
        process.abandon()
    await gone(lambda: process.alive)
    assert not (tmp_path / "ended").exists()


async def test_all_that_a_process_says_before_it_ends_is_heard():
    ears = Ears()
    code = "import os, sys\nprint('why', file=sys.stderr)\nos.write(1, bytes(300_000))"
    process = await ProcessRunner().connect((sys.executable, "-c", code), ears.hear)
    async with asyncio.timeout(30):
        await ears.ended.wait()
    assert ears.said == bytes(300_000)
    async with asyncio.timeout(30):
        while process.alive or not process.stderr:
            await asyncio.sleep(0)
    assert process.stderr == "why\n"
    process.write(b"lost")
    process.abandon()
    await settle()


async def test_a_process_that_cannot_be_started_leaves_no_pipe_open():
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with pytest.raises(FileNotFoundError):
        await ProcessRunner().connect(("no-such-command-anywhere",), lambda data: None)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


LATE = "import os, time; os.close(1); time.sleep(0.3); os.write(2, b'why\\n')"


@pytest.mark.slow
async def test_a_process_that_no_thread_can_wait_for_was_not_started_either(monkeypatch):
    """Python 3.11 waits for each in a thread of its own."""

    async def refused(*_, **__):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "subprocess_exec", refused)
    with pytest.raises(BlockingIOError, match="can't start new thread"):
        await ProcessRunner().run(("true",), 60)


async def test_last_words_that_come_after_the_output_ended_are_waited_for():
    process = await ProcessRunner().spawn((sys.executable, "-c", LATE))
    assert await process.readline() is None
    assert await process.last_words(30) == "why\n"
    process.abandon()
    await settle()


async def test_last_words_that_do_not_come_are_not_waited_for():
    process = await ProcessRunner().spawn((sys.executable, "-c", "input()"))
    assert await process.last_words(0.01) == ""
    process.abandon()
    await settle()


def test_the_environment_makes_zpool_plain_and_findable(monkeypatch):
    for name, value in {"ZFS_COLOR": "1", "ZPOOL_VDEV_NAME_GUID": "1", "PATH": "/bin"}.items():
        monkeypatch.setenv(name, value)
    environment = zfs_environment()
    assert environment["LC_ALL"] == "C.UTF-8"
    assert environment["PATH"].split(":") == ["/bin", "/usr/sbin", "/sbin", "/usr/local/sbin"]
    assert not {"ZFS_COLOR", "ZPOOL_VDEV_NAME_GUID"} & environment.keys()
    assert find_command("no-such-command-anywhere") is None


LEAVES_A_PROCESS_BEHIND = """
import asyncio, sys
from zconsole.system.async_process import ProcessRunner
async def main():
    runner = ProcessRunner()
    (await runner.spawn((sys.executable, "-c", "input()"))).abandon()
    await runner.settle(30)
asyncio.run(main())
"""


@pytest.mark.slow
async def test_nothing_is_said_about_a_process_left_behind_when_the_program_ends():
    argv = (sys.executable, "-c", LEAVES_A_PROCESS_BEHIND)
    done = await ProcessRunner().run(argv, 60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


async def test_settling_waits_for_nobody_who_was_not_told_to_stop():
    runner = ProcessRunner()
    process = await runner.spawn((sys.executable, "-c", "input()"))
    async with asyncio.timeout(30):
        await runner.settle(60)
    assert process.alive
    process.abandon()
    await runner.settle(30)
    assert not process.alive
    await settle()


@pytest.mark.slow
def test_without_a_loop_a_command_is_killed_at_its_deadline():
    with pytest.raises(DeadlineError, match=r"gave no answer in 0\.3 s"):
        run_blocking((sys.executable, "-c", "import time; time.sleep(60)"), 0.300004)


ENDLESS = "import os\nwhile True: os.write(1, b'x' * 60000{newline})"


async def test_a_command_that_writes_without_end_is_stopped(monkeypatch):
    monkeypatch.setattr(async_process, "MOST_OUTPUT", 1_000_000)
    with pytest.raises(DeadlineError, match="wrote more than") as caught:
        await ProcessRunner().run((sys.executable, "-c", ENDLESS.format(newline="")), 60)
    await gone(caught.value.alive)


@pytest.mark.slow
@pytest.mark.parametrize("newline", ["", " + b'\\n'"])
async def test_a_long_lived_process_that_writes_without_end_ends(monkeypatch, newline):
    monkeypatch.setattr(async_process, "MOST_OUTPUT", 1_000_000)
    code = ENDLESS.format(newline=newline)
    process = await ProcessRunner().spawn((sys.executable, "-c", code))
    async with asyncio.timeout(60):
        await asyncio.sleep(0.5)
        taken = 0
        while (line := await process.readline()) is not None:
            taken += len(line)
    assert taken <= 1_000_000
    process.abandon()
    await gone(lambda: process.alive)


async def test_lines_count_that_wait_and_not_those_that_were_taken(monkeypatch):
    monkeypatch.setattr(async_process, "MOST_OUTPUT", 1000)
    lines = async_process.LineProcess()
    for _ in range(100):
        lines.pipe_data_received(1, b"x" * 99 + b"\n")
        assert await lines.readline() == "x" * 99
    for _ in range(9):
        lines.pipe_data_received(1, b"x" * 99 + b"\n")
    lines.pipe_data_received(1, b"x" * 101)
    assert [await lines.readline() for _ in range(10)] == [*["x" * 99] * 9, None]
