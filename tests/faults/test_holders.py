"""Processes that have a file open without writing keep everything that is written later."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.beside import beside, leave_namespace, mount
from tests.faults.harness import FaultySys, create
from tests.faults.holding import append, bound, is_left_alone, moved, opened_again, tree
from zconsole.rebalance.engine import holders


@pytest.mark.parametrize("flags", [os.O_PATH, os.O_RDONLY], ids=["path", "read"])
def test_a_file_that_is_open_elsewhere_is_in_use(area: Path, flags: int) -> None:
    root = tree(area)
    held: list[int] = []
    begin = lambda: held.append(os.open(root / "held", flags))  # noqa: E731
    with beside(begin, lambda: opened_again(held[0])) as other:
        create(root, area / "job.db", others=True)
        found = moved(area)
        other.go()
        assert found["held"][1] == f"in use by {comm(other.process)} (pid {other.process})"
    is_left_alone(found, root)


def test_nothing_is_copied_of_a_file_in_use(area: Path) -> None:
    root, held, system = tree(area, "held"), [], FaultySys()
    create(root, area / "job.db", others=True)
    with beside(lambda: held.append(os.open(root / "held", os.O_PATH))):
        assert moved(area, system)["held"][0] == "skipped"
    assert "pwrite" not in system.calls


def test_a_descriptor_of_another_namespace_is_seen(area: Path) -> None:
    """Its path does not exist here."""
    root, elsewhere = tree(area), area / "elsewhere"
    elsewhere.mkdir()
    held: list[int] = []

    def begin() -> None:
        mount(root, elsewhere)
        held.append(os.open(elsewhere / "held", os.O_PATH))

    with beside(begin, lambda: opened_again(held[0]), own_mounts=True) as other:
        create(root, area / "job.db", others=True)
        found = moved(area)
        other.go()
    is_left_alone(found, root)


def comm(process: int) -> str:
    return Path(f"/proc/{process}/comm").read_text().strip()


def test_a_mapping_that_can_be_written_to_refuses_the_lease(area: Path) -> None:
    """The mapping keeps the file open for writing after its descriptor is closed."""
    root, maps = tree(area), []

    def begin() -> None:
        with (root / "held").open("r+b") as file:
            maps.append(mmap.mmap(file.fileno(), 0))

    def write() -> None:
        maps[0][:6] = b"mapped"

    with beside(begin, write) as other:
        create(root, area / "job.db", others=True)
        assert moved(area) == {"held": ("skipped", "open for writing"), "free": ("moved", None)}
        other.go()
    assert (root / "held").read_bytes() == b"mapped\n"


def test_a_mapping_that_can_be_read_never_becomes_writable(area: Path) -> None:
    """So the engine need not look for readable mappings."""
    root = tree(area)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    with (root / "held").open("rb") as file:
        place = libc.mmap(None, 7, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    both = mmap.PROT_READ | mmap.PROT_WRITE
    assert libc.mprotect(ctypes.c_void_p(place), ctypes.c_size_t(7), both) == -1
    assert ctypes.get_errno() == errno.EACCES
    libc.munmap(ctypes.c_void_p(place), ctypes.c_size_t(7))


EXIT = {"x86_64": 60, "aarch64": 93}
"""Number of the system call that ends one thread (asm/unistd.h)."""


@pytest.mark.skipif(platform.machine() not in EXIT, reason="the number of a call is not known")
def test_a_process_whose_first_thread_has_ended_is_seen(area: Path) -> None:
    root, held, end = tree(area), [], os.pipe()

    def hold() -> None:
        held.append(os.open(root / "held", os.O_PATH))
        os.write(end[1], b"1")
        os.close(end[1])
        threading.Event().wait(60)

    process = os.fork()
    if not process:
        threading.Thread(target=hold, daemon=True).start()
        ctypes.CDLL(None).syscall(EXIT[platform.machine()], 0)
    os.close(end[1])
    try:
        assert os.read(end[0], 1) == b"1"
        while alive(process):
            threading.Event().wait(0.01)
        assert str(process) not in holders.Holders.look(()).hidden
        create(root, area / "job.db", others=True)
        found = moved(area)
    finally:
        os.close(end[0])
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    assert found["held"][0] == "skipped"
    assert (found["held"][1] or "").endswith(f"(pid {process})")


def alive(process: int) -> bool:
    """Return whether the first thread of a process is alive."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


CLONE_FS, CLONE_FILES = 0x200, 0x400


def apart_in_a_thread(what: int, *acts: Callable[[], object]) -> list[Callable[[], object]]:
    """Return steps of a thread that does not share descriptors, or the root, with its process."""
    thread = ThreadPoolExecutor(1)

    def leave() -> None:
        assert not ctypes.CDLL(None).unshare(what)

    def first() -> object:
        thread.submit(leave).result()
        return thread.submit(acts[0]).result()

    return [first, *(lambda act=act: thread.submit(act).result() for act in acts[1:])]


@pytest.mark.parametrize("told", [True, False], ids=["kcmp", "no kcmp"])
def test_a_descriptor_that_a_thread_keeps_for_itself_is_seen(
    area: Path, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    root, held = tree(area), []
    monkeypatch.setattr(holders, "_KCMP", holders._KCMP if told else {})

    def hold() -> None:
        held.append(os.open(root / "held", os.O_PATH))

    steps = apart_in_a_thread(CLONE_FILES, hold, lambda: opened_by_thread(held[0]))
    with beside(*steps) as other:
        create(root, area / "job.db", others=True)
        found = moved(area)
        other.go()
    is_left_alone(found, root)


def opened_by_thread(fd: int) -> None:
    append(f"/proc/thread-self/fd/{fd}")


def test_a_mount_that_only_a_thread_sees_is_in_use(area: Path) -> None:
    root = tree(area)

    def begin() -> None:
        leave_namespace()
        bound(root)

    steps = apart_in_a_thread(CLONE_FS, begin, lambda: append(area / "mounted"))
    with beside(*steps) as other:
        create(root, area / "job.db", others=True)
        found = moved(area)
        other.go()
    is_left_alone(found, root)
