from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.waiting import soon
from zconsole.errors import UsageError, ZconsoleError
from zconsole.hardware import blink
from zconsole.hardware.blink import BLOCK, HALF, READS, Blinker, busy_disks
from zconsole.system.host import alive, process_mark
from zconsole.system.patient import begun

ROW = "   8       0 {name} 10 0 80 5 20 0 160 9 0 {io} 14 0 0 0 0 0 0\n"


class Clock:
    """Waits that take no time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.reads: list[float] = []

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def read(self) -> None:
        self.reads.append(self.now)


def test_it_reads_half_a_second_and_rests_half_a_second():
    clock = Clock()
    blink.blink(clock.read, lambda: clock.now >= 2.9, clock.wait)
    assert len(clock.reads) == 3 * READS
    assert all(t % (2 * HALF) < HALF + 0.01 or t % 1 > 0.99 for t in clock.reads)


def test_reads_that_fail_go_on_until_the_disk_is_gone():
    clock = Clock()
    errors = [OSError(5, "I/O error")] * 30 + [OSError(6, "No such device or address")]

    def read() -> None:
        clock.read()
        raise errors.pop(0)

    blink.blink(read, lambda: False, clock.wait)
    assert len(clock.reads) == 31


def test_it_only_reads_one_block_anywhere_on_the_disk(tmp_path, monkeypatch):
    disk = tmp_path / "disk"
    disk.write_bytes(b"x" * BLOCK * 8)
    disk.chmod(0o400)
    monkeypatch.setattr(blink, "is_disk", lambda handle: True)
    seen = []
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, at: seen.append((len(buffers[0]), at)))
    read = blink.reader(str(disk))
    for _ in range(100):
        read()
    assert {size for size, _ in seen} == {BLOCK}
    assert {at for _, at in seen} == {BLOCK * n for n in range(8)}


def test_a_file_or_a_link_does_not_blink(tmp_path):
    file = tmp_path / "leaf"
    file.write_bytes(b"")
    with pytest.raises(UsageError, match="is not a disk"):
        blink.reader(str(file))
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(OSError, match="symbolic"):
        blink.reader(str(tmp_path / "link"))


def test_disks_that_do_io_now_are_busy(tmp_path):
    stats = tmp_path / "proc/diskstats"
    stats.parent.mkdir()
    for name in ("sda", "sdb", "sdc", "loop0"):
        (tmp_path / "sys/block" / name).mkdir(parents=True)

    def write(**io: int) -> None:
        stats.write_text("".join(ROW.format(name=name, io=ms) for name, ms in io.items()))

    write(sda=100, sdb=100, sda1=100, sdc=7, loop0=1)
    busy = busy_disks(
        tmp_path, lambda seconds: write(sda=104, sdb=300, sda1=300, sdc=900, loop0=400, sdd=900)
    )
    assert list(busy.items()) == [("sdc", 1.0), ("sdb", 0.5)]


# The process

FAKE = """
import sys
from zconsole.hardware import blink
blink.is_disk = lambda handle: True
sys.exit(blink.main(sys.argv[1:]))
"""


@pytest.fixture
def disk(tmp_path: Path) -> str:
    (tmp_path / "disk").write_bytes(b"x" * BLOCK * 8)
    return str(tmp_path / "disk")


def blinking(disk: str, seconds: float, watch: str) -> subprocess.Popen[bytes]:
    words = ("--seconds", str(seconds), "--watch", watch, disk)
    process = subprocess.Popen((sys.executable, "-c", FAKE, *words), stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"blinking\n"
    return process


def test_it_reads_until_its_time_is_over(disk, monkeypatch):
    reads: list[str] = []
    monkeypatch.setattr(blink, "reader", lambda node: lambda: reads.append(node))
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    watch = process_mark(os.getpid()) or ""
    assert blink.main(("--seconds", "0.01", "--watch", watch, disk)) == 0
    assert reads


@pytest.mark.slow
def test_it_ends_with_the_process_that_started_it(disk):
    parent = subprocess.Popen((sys.executable, "-c", "import time; time.sleep(60)"))
    process = blinking(disk, 60.0, process_mark(parent.pid))
    parent.kill()
    parent.wait()
    process.communicate(timeout=20)
    assert process.returncode == 0


@pytest.mark.slow
def test_it_ends_when_its_time_is_over(disk):
    process = blinking(disk, 0.1, process_mark(os.getpid()))
    process.communicate(timeout=20)
    assert process.returncode == 0


@pytest.mark.slow
def test_a_file_is_refused_in_words(disk):
    blinker = Blinker()
    with pytest.raises(ZconsoleError, match="is not a disk: only a disk can blink"):
        blinker.start(disk)
    assert blinker.stop_all() == 0


@pytest.mark.slow
def test_a_disk_that_is_gone_is_told(tmp_path):
    with pytest.raises(ZconsoleError, match="No such file"):
        Blinker().start(str(tmp_path / "gone"))


@pytest.mark.slow
def test_it_is_killed_and_nobody_waits_for_it(tmp_path, disk, monkeypatch):
    package = tmp_path / "zconsole"
    package.mkdir()
    marks: list[str] = []

    def started(argv: tuple[str, ...]) -> blink.Child:
        child = real((sys.executable, "-c", FAKE, *argv[3:]))
        marks.append(process_mark(child._process.pid))
        return child

    real = blink.Child
    monkeypatch.setattr(blink, "Child", started)
    blinker = Blinker()
    blinker.start(disk, 60.0)
    pid = int(marks[0].partition(":")[0])
    assert os.getpgid(pid) == pid
    blinker.start(disk, 60.0)  # again: the first one ends
    assert soon(lambda: not alive(marks[0]))
    os.kill(int(marks[1].partition(":")[0]), signal.SIGSTOP)  # as one that is stuck
    assert blinker.stop(disk)
    assert not blinker.stop(disk)
    assert soon(lambda: not alive(marks[1]))


@pytest.mark.slow
def test_one_that_is_stuck_in_the_kernel_holds_nobody_up(monkeypatch):
    """It can't be killed, and a thread still waits for what it would say."""
    monkeypatch.setattr(blink, "START", 0.05)
    left: list[blink.Child] = []
    real, killpg = blink.Child, os.killpg

    def stuck(_: tuple[str, ...]) -> blink.Child:
        left.append(real((sys.executable, "-c", "import time; time.sleep(60)")))
        return left[0]

    monkeypatch.setattr(blink, "Child", stuck)
    monkeypatch.setattr(os, "killpg", lambda *_: None)

    attempt = begun(lambda: Blinker().start("/dev/sdx"))
    with pytest.raises(ZconsoleError, match="doesn't answer"):
        attempt.result(30)
    killpg(left[0]._process.pid, signal.SIGKILL)
    left[0].kill()  # closes what was left open


@pytest.mark.slow
def test_a_disk_that_gives_no_answer_is_given_up(monkeypatch):
    monkeypatch.setattr(blink, "START", 0.05)
    real = blink.Child
    monkeypatch.setattr(
        blink, "Child", lambda argv: real((sys.executable, "-c", "import time; time.sleep(60)"))
    )
    blinker = Blinker()
    with pytest.raises(ZconsoleError, match="doesn't answer, so it doesn't blink"):
        blinker.start("/dev/sdx")
    assert not blinker.stop("/dev/sdx")
