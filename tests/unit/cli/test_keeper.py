"""The two processes of the keeper, each killed while it has duties."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.unit.hardware.lit_chassis import Chassis
from tests.unit.tunables.conftest import Kernel
from tests.unit.tunables.test_guard import NAME as FROZEN
from tests.unit.waiting import soon
from zconsole.cli import keeper as processes
from zconsole.cli.main import main
from zconsole.errors import ZconsoleError
from zconsole.hardware.light import Leds, LocateLights
from zconsole.system import keeper
from zconsole.system.host import alive, process_mark
from zconsole.system.keeper import ask, asked, wake
from zconsole.system.patient import NoAnswerError
from zconsole.system.record_file import LockedRecord
from zconsole.system.state_dir import try_lock
from zconsole.tunables import autopilot, guard
from zconsole.tunables.control import Control
from zconsole.tunables.guard import GuardOrder
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.pilot import HoldOrder, Targets
from zconsole.tunables.store import TunableStore

pytestmark = pytest.mark.slow

WRITES = "zfs_vdev_async_write_min_active"
TIME = "zfs_resilver_min_time_ms"


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    made = Kernel(tmp_path)
    made.state.chmod(0o700)
    yield made
    if pid := parent_of(made):
        os.kill(pid, signal.SIGTERM)
        assert soon(lambda: parent_of(made) is None)


def parent_of(kernel: Kernel) -> int | None:
    """Return the process id of the keeper's parent, found by its lock."""
    lock = kernel.state / keeper.LOCK
    if not lock.exists():
        return None
    rows = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    status = lock.stat()
    # With the device: another worker may have locked the file of that number on another one.
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    return next((int(row[4]) for row in rows if row[5] == f"{device}:{status.st_ino}"), None)


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def options(kernel: Kernel) -> tuple[str, ...]:
    return "--module", str(kernel.module), "--boot-id", str(kernel.boot_id)


def freeze(kernel: Kernel, seconds: float = 60.0) -> None:
    guard.start(kernel.state, GuardOrder(FROZEN, 1, seconds), options(kernel))


def values(kernel: Kernel) -> tuple[int, int]:
    return kernel.read(FROZEN), kernel.read(TIME)


@pytest.fixture
def steering(kernel: Kernel) -> Kernel:
    """A keeper that has frozen scans and steers a simulated one."""
    words = ["--state", str(kernel.state), *options(kernel)]
    argv = [sys.executable, "-m", "tests.unit.tunables.steered_kernel", *words]
    subprocess.run(argv, check=True)
    freeze(kernel)
    autopilot.start(kernel.state, HoldOrder(Targets(0.02)))
    assert soon(lambda: kernel.read(TIME) != 3000)
    return kernel


def test_a_killed_child_leaves_the_originals_and_another_one_goes_on(steering):
    parent = parent_of(steering)
    child = child_of(parent)
    os.kill(child, signal.SIGKILL)
    assert soon(lambda: values(steering) == (0, 3000))
    freeze(steering)
    assert steering.read(FROZEN) == 1
    assert parent_of(steering) == parent
    assert child_of(parent) != child
    assert autopilot.status(steering.state) is None


def test_a_killed_parent_leaves_the_originals(steering):
    parent = parent_of(steering)
    mark = process_mark(child_of(parent))
    os.kill(parent, signal.SIGKILL)
    assert soon(lambda: not alive(mark))
    assert values(steering) == (0, 3000)


def test_what_both_leave_killed_at_once_is_restored_by_the_next_console(steering):
    parent = parent_of(steering)
    marks = [process_mark(parent), process_mark(child_of(parent))]
    os.killpg(parent, signal.SIGKILL)
    assert soon(lambda: not any(map(alive, marks)))
    assert values(steering)[0] == 1
    assert not autopilot.stop(steering.state)
    assert steering.console().settle(1.0) != ()
    assert values(steering) == (0, 3000)


def test_told_to_end_it_restores_and_another_one_begins_with_the_next_order(steering):
    mark = process_mark(parent_of(steering))
    os.kill(parent_of(steering), signal.SIGTERM)
    assert soon(lambda: not alive(mark))
    assert values(steering) == (0, 3000)
    freeze(steering, 0.1)
    assert soon(lambda: steering.read(FROZEN) == 0)
    assert soon(lambda: parent_of(steering) is None)


def test_who_ordered_it_is_in_the_log(kernel, monkeypatch):
    for name in ("ada", "bob"):
        monkeypatch.setenv("SUDO_USER", name)
        freeze(kernel, 0.1)
        assert soon(lambda: kernel.read(FROZEN) == 0)
    log = kernel.state / "audit.jsonl"
    assert soon(lambda: log.read_text().count("restore") == 4)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert sorted(line["who"]["sudo_user"] for line in lines) == ["ada"] * 4 + ["bob"] * 4


def test_what_a_killed_console_held_goes_back_though_no_other_one_runs(steering):
    console = subprocess.Popen(["sleep", "60"])
    control = steering.console(process_mark(console.pid))
    control._wake = partial(wake, steering.state, guard.KEPT)
    control.set({WRITES: 5}, 1.0)
    console.kill()
    console.wait()
    assert soon(lambda: steering.read(WRITES) == 2)
    # One duty ends, and the others go on.
    assert autopilot.stop(steering.state)
    assert values(steering) == (1, 3000)
    assert not autopilot.stop(steering.state)


@pytest.mark.parametrize("victim", ["child", "parent"])
def test_a_light_goes_off_in_time_though_a_process_was_killed(kernel, tmp_path, victim):
    chassis = Chassis(tmp_path)
    chassis.enclosure()
    led, lights = chassis.led(), LocateLights(kernel.state, Leds(tmp_path), log=chassis.log)
    lights.light(chassis.slot(), "S1", time.time() + 5.0)
    parent = parent_of(kernel)
    os.kill(child_of(parent) if victim == "child" else parent, signal.SIGKILL)
    assert led.read_text() == "1"
    assert soon(lambda: led.read_text() == "0")
    assert soon(lambda: parent_of(kernel) is None)
    assert lights.lit() == ()


def test_nothing_in_the_directory_of_the_console_is_run(kernel, tmp_path, monkeypatch):
    place = tmp_path / "somebodys"
    place.mkdir()
    for name in ("argparse.py", "zconsole.py"):
        (place / name).write_text("import sys; sys.exit('not what was asked for')")
    monkeypatch.chdir(place)
    freeze(kernel, 0.1)
    assert Path(f"/proc/{parent_of(kernel)}/cwd").readlink() == Path("/")
    assert soon(lambda: kernel.read(FROZEN) == 0)


def test_only_its_owner_reaches_it(kernel):
    freeze(kernel)
    assert (kernel.state / keeper.SOCKET).stat().st_mode & 0o077 == 0
    kernel.state.chmod(0o777)
    with pytest.raises(ZconsoleError, match="others may write"):
        asked(kernel.state, order=keeper.LOOK)
    kernel.state.chmod(0o700)


def test_one_that_cannot_start_says_why(kernel, monkeypatch):
    with pytest.raises(ZconsoleError, match="unrecognized arguments"):
        ask(kernel.state, ("--nonsense",), order=keeper.LOOK)
    monkeypatch.setattr(keeper, "START_SECONDS", 0.01)
    with pytest.raises(ZconsoleError, match=r"no answer in 0\.01 s"):
        freeze(kernel)


def test_a_child_keeps_no_lock_that_a_thread_of_its_parent_had_just_then(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)

    async def keep(*_: object) -> bool:
        await asyncio.sleep(60.0)
        return False

    monkeypatch.setattr(processes, "_keep", keep)
    held, own = try_lock(tmp_path / "audit"), try_lock(tmp_path / keeper.LOCK)
    assert held is not None
    assert own is not None
    with socket.socket(socket.AF_UNIX) as line:
        shared = os.memfd_create("test")
        child = processes._begin_child(argparse.Namespace(), own, line, os.pipe(), shared, (), 0.0)
        for lock in (held, own):
            os.close(lock)
        assert soon(lambda: try_lock(tmp_path / "audit") is not None, 5.0)
        assert try_lock(tmp_path / keeper.LOCK) is None
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def left_open(pid: int) -> list[int]:
    """Duplicate all open files of a process, as a thread hanging in the kernel would keep them."""
    getfd, handle = 438, os.pidfd_open(pid)
    call = ctypes.CDLL(None, use_errno=True).syscall
    files = [int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()]
    found = [call(getfd, handle, file, 0) for file in files if file > 2]
    os.close(handle)
    if -1 in found:
        pytest.skip("a process may not be looked into here")
    return found


@pytest.mark.parametrize("end", ["told", "child alone"])
def test_another_one_begins_though_a_thread_of_the_last_hangs_in_the_kernel(kernel, end):
    freeze(kernel)
    parent = parent_of(kernel)
    child = child_of(parent)
    files, mark = left_open(child), process_mark(child)
    try:
        os.kill(parent, signal.SIGTERM if end == "told" else signal.SIGKILL)
        assert soon(lambda: not alive(mark))
        assert kernel.read(FROZEN) == 0
        begun = time.monotonic()
        freeze(kernel)
        assert time.monotonic() - begun < 20.0
        assert kernel.read(FROZEN) == 1
    finally:
        for file in files:
            os.close(file)


def test_what_the_parent_could_not_put_back_the_next_console_does(kernel):
    freeze(kernel)
    record = kernel.state / "tunables.json"
    content, parent = record.read_bytes(), parent_of(kernel)
    child = child_of(parent)
    mark = process_mark(child)
    record.unlink()  # as on a disk that does not answer
    os.kill(child, signal.SIGKILL)
    assert soon(lambda: not alive(mark))
    assert soon(lambda: child_of(parent) != child)
    record.write_bytes(content)
    record.chmod(0o600)
    kernel.console().settle(1.0)  # unless the new child has
    assert soon(lambda: kernel.read(FROZEN) == 0)


def damage(kernel: Kernel, _: pytest.MonkeyPatch) -> None:
    (kernel.state / "tunables.json").write_text("{")


def remove(kernel: Kernel, _: pytest.MonkeyPatch) -> None:
    (kernel.state / "tunables.json").unlink()


def open_to_others(kernel: Kernel, _: pytest.MonkeyPatch) -> None:
    kernel.state.chmod(0o777)


def hang(_: Kernel, patch: pytest.MonkeyPatch) -> None:
    def hangs(*_: object, **__: object) -> None:
        raise NoAnswerError("no answer")

    patch.setattr(LockedRecord, "read", hangs)
    patch.setattr(LockedRecord, "open", hangs)


@pytest.mark.parametrize("unreadable", [damage, remove, open_to_others, hang])
def test_the_parent_needs_no_record_that_can_be_read(kernel, monkeypatch, unreadable):
    mark, shared = "999999999:1", os.memfd_create("test")
    args = argparse.Namespace(state=kernel.state, module=kernel.module, boot_id=kernel.boot_id)
    child = Control(kernel.parameters, TunableStore(kernel.state, shared=shared), kernel.log, mark)
    child.set({TIME: 5000, WRITES: 5}, 1.0)
    kernel.console("1:1").set({"zfs_scrub_min_time_ms": 2000}, 2.0)
    # It is killed in the next step, after the record is written.
    write = Parameters.write

    def dies(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Parameters, "write", dies)
    with pytest.raises(KeyboardInterrupt):
        child.set({TIME: 6000}, 3.0)
    monkeypatch.setattr(Parameters, "write", write)

    unreadable(kernel, monkeypatch)
    processes._restore(args, mark, shared)
    assert (kernel.read(TIME), kernel.read(WRITES)) == (3000, 2)
    assert kernel.read("zfs_scrub_min_time_ms") == 2000
    os.close(shared)
    kernel.state.chmod(0o700)


def test_hours_are_the_machines_whoever_started_it(tmp_path, monkeypatch):
    """TZ may be passed on by ssh, and a user's profile may set it."""
    tmp_path.chmod(0o700)
    monkeypatch.delenv("TZ", raising=False)
    time.tzset()
    machine = time.localtime(0.0).tm_gmtoff
    seen = tmp_path / "seen"
    monkeypatch.setattr(
        processes, "_supervise", lambda *_: seen.write_text(str(time.localtime(0.0).tm_gmtoff))
    )
    monkeypatch.setenv("TZ", "HERE-7:07")
    time.tzset()
    assert time.localtime(0.0).tm_gmtoff != machine
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            processes._parent(processes.parsed(["--state", str(tmp_path)]), writer, ())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    for end in (reader, writer):
        os.close(end)
    monkeypatch.undo()
    time.tzset()
    assert seen.read_text() == str(machine)


class Children:
    """Children that are killed, until one is left that ends by itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, killed: int, no_process: int = 0) -> None:
        self.killed, self.no_process = killed, no_process
        self.pauses: list[float] = []
        self.put_back: list[str] = []
        monkeypatch.setattr(processes, "_watch", self.watch)
        monkeypatch.setattr(processes, "CHECK_SECONDS", 0.0)
        monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("nobody keeps anything meanwhile"))

    def begin(self, pause: float) -> int:
        if self.no_process:
            self.no_process -= 1
            raise BlockingIOError("Resource temporarily unavailable")
        self.pauses.append(pause)
        return os.getpid()

    def watch(self, child: int) -> bool:
        assert child == os.getpid()
        self.killed -= 1
        return self.killed < 0


def test_a_child_that_was_killed_is_followed_at_once_by_one_that_pauses(monkeypatch):
    """The new child is there to restore tunables if the parent is killed as well."""
    children = Children(monkeypatch, killed=7, no_process=3)
    processes._supervise(children.begin, children.put_back.append)
    assert children.pauses == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert children.put_back == [process_mark(os.getpid())] * 8


def test_the_parent_ends_when_it_is_told_to_where_no_process_can_be_started(monkeypatch):
    children = Children(monkeypatch, killed=0, no_process=10**9)
    monkeypatch.setattr(signal, "sigtimedwait", lambda stops, _: stops)
    processes._supervise(children.begin, children.put_back.append)
    assert children.pauses == []


@pytest.mark.parametrize("end", ["told", "alone"])
def test_a_child_that_pauses_ends_at_once(tmp_path, monkeypatch, end):
    """The parent is gone, or told to end; saved duties are then for another keeper."""
    kernel = Kernel(tmp_path)
    kernel.state.chmod(0o700)
    monkeypatch.setattr(signal, "pthread_sigmask", lambda *_: None)
    life, parents_end = os.pipe()

    async def keep() -> bool:
        words = ["--state", str(kernel.state), *options(kernel)]
        args = processes.parsed(words)
        args.root = tmp_path
        line = keeper.listening_socket(kernel.state)
        keeping = asyncio.create_task(processes._keep(args, line, life, os.memfd_create("t"), 1e9))
        await asyncio.sleep(0.0)
        if end == "told":
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            os.close(parents_end)
        async with asyncio.timeout(30.0):
            return await keeping

    assert asyncio.run(keep()) == (end == "alone")
    os.close(life)


def test_a_child_has_the_time_that_its_duties_may_take_to_end():
    duties = (guard.Guard, autopilot.Autopilot, keeper.StandingDuty)
    assert max(duty.deadline for duty in duties) * 2 < processes.STOP_WITHIN


def test_what_is_kept_is_listed_and_ended_by_a_command(kernel, monkeypatch, capsys):
    monkeypatch.setenv("ZCONSOLE_STATE", str(kernel.state))
    assert main(["keeper"]) == 0
    assert capsys.readouterr() == (
        "",
        "zconsole: nothing goes on in the background for this user\n",
    )
    freeze(kernel)
    assert main(["keeper"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("guard        since 20")
    assert line.endswith("to end it: zconsole tunables restore")
    assert main(["keeper", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["process"], told["duty"]) == (parent_of(kernel), "guard")
    assert main(["keeper", "end", "--read-only"]) == 2
    assert kernel.read(FROZEN) == 1
    assert main(["keeper", "end"]) == 0
    assert kernel.read(FROZEN) == 0
    assert soon(lambda: parent_of(kernel) is None)
    assert "restored" in capsys.readouterr().err
