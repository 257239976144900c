"""Copies made by the process beside: like one's own, and never missed when it fails."""

from __future__ import annotations

import array
import contextlib
import marshal
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.faults import trees
from tests.faults.harness import (
    ALONE,
    FaultySys,
    Killed,
    create,
    descriptors,
    descriptors_closed,
    kill_after,
    run,
)
from zconsole.rebalance.engine import copyist
from zconsole.rebalance.engine.aside import COPYIST, Aside, Start
from zconsole.rebalance.engine.item import Item
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.running.job import Clocks
from zconsole.sources.blocking import start_companion

SMALL_FILES = 150
Serve = Callable[[socket.socket], None]


@dataclass
class Counting(Aside):
    """Counts the copies that came back."""

    made: int = 0

    def take(self, seconds: float) -> list[tuple[Item, copyist.Copied | None]]:
        back = super().take(seconds)
        self.made += sum(copied is not None for _, copied in back)
        return back


@dataclass
class Thread:
    """In the place of the process: what happens to its messages is up to the test."""

    serve: Serve
    started: list[threading.Thread] = field(default_factory=list)

    def __call__(self, theirs: socket.socket) -> Thread:
        self.started.append(threading.Thread(target=self._serve, args=(theirs.dup(),)))
        self.started[-1].start()
        return self

    def _serve(self, channel: socket.socket) -> None:
        with channel, contextlib.suppress(OSError):
            self.serve(channel)

    def leave(self) -> None:
        for thread in self.started:
            thread.join()


@pytest.fixture
def root(area: Path) -> Path:
    """Every awkward kind of file, and many small ones of several owners, modes and times."""
    root = area / "tree"
    trees.build(root)
    rng = random.Random(1)
    for number in range(SMALL_FILES):
        path = root / f"small{number}"
        path.write_bytes(os.urandom(rng.choice((0, 1, 4096, 9000, 70_000))))
        path.chmod(rng.choice((0o600, 0o644, 0o755, 0o4711)))
        if trees.ROOT:
            os.chown(path, rng.choice((0, 99)), 0)
        os.utime(path, ns=(10**18 + number, 10**18 + 3 * number))
    os.utime(root, ns=(10**18, 10**18 + 5))
    return root


@contextlib.contextmanager
def helped(start: Start) -> Iterator[Counting]:
    """The job's end of a process, which is let go of."""
    aside = Counting(start, worth=1)
    try:
        yield aside
    finally:
        aside.leave()


@pytest.fixture
def beside() -> Iterator[Counting]:
    """The real process."""
    with helped(partial(start_companion, COPYIST)) as aside:
        yield aside


def moved_whole(root: Path, aside: Counting, sys: Sys | None = None) -> dict[str, Any]:
    """Move a tree with help; every file is there, and is another."""
    before, inodes = trees.manifest(root), trees.inodes(root)
    journal = root.parent / "job.db"
    create(root, journal)
    _, summary = run(journal, sys, ALONE, aside=aside)
    assert trees.manifest(root) == before
    assert (summary["files_failed"], summary["files_moved"]) == (0, len(inodes))
    after = trees.inodes(root)
    assert all(after[name] != inode for name, inode in inodes.items())
    return summary


def test_copies_made_aside_are_like_ones_own(root: Path, beside: Counting) -> None:
    open_before = len(descriptors())
    slow = FaultySys(lambda _, name: time.sleep(0.005) if name == "open_unnamed" else None)
    moved_whole(root, beside, slow)
    assert beside.made > SMALL_FILES / 2
    assert not beside.failed
    beside.leave()
    assert len(descriptors()) == open_before


def nothing(channel: socket.socket) -> None:
    """Ends at once."""


def one_portion(channel: socket.socket) -> None:
    """Ends with a portion in hand, after one that was right."""
    server, client = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    helper = threading.Thread(target=copyist.Copying(Sys()).serve, args=(server,))
    helper.start()
    message = copyist.receive(channel)
    assert message is not None
    copyist.send(client, *message)
    answer = copyist.receive(client)
    assert answer is not None
    copyist.send(channel, *answer)
    copyist.close([*message[1], *answer[1]])
    client.close()
    helper.join()
    server.close()
    if later := copyist.receive(channel):
        copyist.close(later[1])


def answering(
    answer: Callable[[list[Any]], bytes], fds: int = 0
) -> Callable[[socket.socket], None]:
    """Always says the same, with so many descriptors."""

    def serve(channel: socket.socket) -> None:
        while message := copyist.receive(channel):
            (_, files), received = message
            rights = array.array("i", received[:fds])
            control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if fds else []
            try:
                channel.sendmsg([answer(files)], control)
            except OSError:
                return
            finally:
                copyist.close(received)

    return serve


@pytest.mark.parametrize(
    "serve",
    [
        nothing,
        one_portion,
        answering(lambda files: b"nonsense"),
        answering(lambda files: marshal.dumps([])),
        answering(lambda files: marshal.dumps([None] * len(files))),
        answering(lambda files: marshal.dumps([None] * len(files)), fds=2),
        answering(lambda files: marshal.dumps([(1, b"")] * len(files)), fds=1),
        answering(lambda files: marshal.dumps([7] * len(files)), fds=4),
        answering(lambda files: marshal.dumps({"a": 1})),
    ],
    ids=["gone", "dies", "nonsense", "short", "none", "more", "fewer", "numbers", "another"],
)
def test_what_is_not_made_aside_the_job_makes(root: Path, serve: Serve) -> None:
    open_before = len(descriptors())
    slow = FaultySys(lambda _, name: time.sleep(0.002) if name == "open_unnamed" else None)
    with helped(Thread(serve)) as aside:
        moved_whole(root, aside, slow)
    assert len(descriptors()) == open_before


def test_a_copy_of_something_else_is_found_out(root: Path) -> None:
    """Every copy is read back by the job itself."""

    def serve(channel: socket.socket) -> None:
        while message := copyist.receive(channel):
            (_, files), fds = message
            made = [os.open(root.parent, os.O_TMPFILE | os.O_RDWR) for _ in files]
            wrong = [Sys().reopen(fd, os.O_RDONLY) for fd in made]
            copyist.close(made)
            answers = [(os.fstat(fd).st_ino, b"0" * 32) for fd in wrong]
            copyist.send(channel, answers, wrong)
            copyist.close([*fds, *wrong])

    before = trees.manifest(root)
    create(root, root.parent / "job.db")
    slow = FaultySys(lambda _, name: time.sleep(0.002) if name == "open_unnamed" else None)
    with helped(Thread(serve)) as aside:
        _, summary = run(root.parent / "job.db", slow, ALONE, aside=aside)
    assert aside.made
    assert summary["files_moved"] <= len(trees.inodes(root)) - aside.made
    assert trees.manifest(root) == before


@pytest.mark.parametrize("text", [b"!", b""], ids=["written", "opened"])
def test_a_file_opened_for_writing_while_it_is_away_is_left_alone(root: Path, text: bytes) -> None:
    writers: list[threading.Thread] = []
    waited: list[bool] = []

    def append(path: str) -> None:
        with Path(path).open("ab") as file:  # waits until the lease is let go of
            file.write(text)

    def serve(channel: socket.socket) -> None:
        copying = copyist.Copying(Sys())
        message = copyist.receive(channel)
        assert message is not None
        (length, files), fds = message
        path = Path(f"/proc/self/fd/{fds[0]}").readlink()
        writers.append(threading.Thread(target=append, args=(str(path),)))
        writers[0].start()
        writers[0].join(10)
        waited.append(writers[0].is_alive())
        wanted = [copyist.Wanted(copyist.Metadata(*m), d, n) for m, d, n in files]
        made = copying._portion(length, wanted, fds)
        copyist.send(channel, [e and e[1:] for e in made], [e.fd for e in made if e])
        copyist.close([*fds, *(e.fd for e in made if e)])
        copying.serve(channel)

    open_before = len(descriptors())
    create(root, root.parent / "job.db")
    contents = {path: path.read_bytes() for path in root.iterdir() if path.is_file()}
    slow = FaultySys(lambda _, name: time.sleep(0.002) if name == "open_unnamed" else None)
    with helped(Thread(serve)) as aside:
        _, summary = run(root.parent / "job.db", slow, Clocks(), aside=aside)
    assert len(descriptors()) == open_before
    assert waited == [False]  # for us to give the original back
    added = {path.read_bytes().removeprefix(content) for path, content in contents.items()}
    assert added == {b"", text}
    assert (summary["files_failed"], summary["skipped"]) == (0, {"open for writing": 1})


def test_a_stop_leaves_what_is_away(root: Path, beside: Counting) -> None:
    before = trees.manifest(root)
    create(root, root.parent / "job.db")
    calls = FaultySys()
    begun: list[float] = []

    def stop(_: int, name: str) -> None:
        time.sleep(0.002)
        if name == "open_unnamed" and not begun:
            begun.append(1)
            journal = Journal.open(root.parent / "job.db")
            with closing(journal):
                journal.set("control", {"order": "stop"})

    calls.fault = stop
    open_before = len(descriptors())
    _, summary = run(root.parent / "job.db", calls, ALONE, aside=beside)
    assert summary["stopped_by"] == "stop"
    assert trees.manifest(root) == before
    assert len(descriptors()) == open_before
    with closing(Journal.open(root.parent / "job.db")) as journal:
        journal.set("control", {"order": "run"})
    _, summary = run(root.parent / "job.db", None, ALONE, aside=beside)
    assert (summary["files_failed"], summary["stopped_by"]) == (0, "done")
    assert trees.manifest(root) == before


def test_killed_at_any_moment_with_copies_away(root: Path) -> None:
    before = trees.manifest(root)
    rng = random.Random(2)
    killed = 0
    for number in range(25):
        journal = root.parent / f"job{number}.db"
        create(root, journal)
        aside = Counting(partial(start_companion, COPYIST), worth=1)
        try:
            with descriptors_closed():
                run(journal, kill_after(rng.randrange(4000)), ALONE, aside=aside)
        except Killed:
            killed += 1
        finally:
            if aside._channel is not None:
                aside._channel.detach()  # closed with all others
                aside._channel = None
            aside.leave()
        _, summary = run(journal, clocks=ALONE)
        assert trees.manifest(root) == before
        assert summary["files_failed"] == 0
    assert killed > 10


def test_a_process_that_does_not_end_is_killed(beside: Counting) -> None:
    beside.begin()
    assert not beside.failed
    (pid,) = wait_for(lambda: children(os.getpid()))
    os.kill(int(pid), signal.SIGSTOP)
    beside.leave()
    assert not Path(f"/proc/{pid}").exists()


def test_a_killed_job_takes_its_company_along(area: Path) -> None:
    root = area / "tree"
    root.mkdir()
    for number in range(3000):
        (root / f"f{number}").write_bytes(b"%d" % number)
    before = trees.manifest(root)
    words = ["rebalance", "run", str(root), "--allow-non-zfs", "--yes", "--engine", "copy"]
    command = [sys.executable, "-m", "zconsole", *words, "--journal", str(area / "job.db")]
    job = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    company = wait_for(lambda: children(job.pid))
    job.send_signal(signal.SIGKILL)
    job.wait()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in company))
    run(area / "job.db")
    assert trees.manifest(root) == before


def children(pid: int) -> list[str]:
    """Of a process, those that make copies."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    found = [child for task in tasks for child in task.read_text().split()]
    return [child for child in found if COPYIST in Path(f"/proc/{child}/cmdline").read_text()]


def wait_for(seen: Callable[[], Any], seconds: float = 20.0) -> Any:
    """What is seen at last."""
    until = time.monotonic() + seconds
    while not (found := seen()):
        assert time.monotonic() < until
        time.sleep(0.002)
    return found
