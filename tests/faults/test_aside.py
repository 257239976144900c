"""Copies made by the process beside: like one's own, and never missed when it fails."""

from __future__ import annotations

import array
import marshal
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.faults import trees
from tests.faults.company import (
    SMALL_FILES,
    Counting,
    Serve,
    Thread,
    build,
    forsake,
    helped,
    moved_whole,
)
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
from zconsole.rebalance.engine import copyist, metadata
from zconsole.rebalance.engine.aside import COPYIST
from zconsole.rebalance.engine.descriptors import BATCH_FILES
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.running.job import Clocks
from zconsole.sources.blocking import start_companion

SEVERAL = 80
"""Files of a batch, twice what overlapping ones have, by which the tree makes several."""


@pytest.fixture(autouse=True, params=[BATCH_FILES, SEVERAL], ids=["one", "several"])
def batch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", request.param)


@pytest.fixture
def root(area: Path) -> Path:
    build(area / "tree")
    return area / "tree"


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


def test_originals_are_closed_before_the_answer(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the job lets go of from then on keeps no writer waiting."""
    close, path = copyist.close, root / "small1"

    def late(fds: Sequence[int]) -> None:
        time.sleep(0.2)
        close(fds)

    monkeypatch.setattr(copyist, "close", late)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    thread = threading.Thread(target=copyist.Copying(Sys()).serve, args=(theirs,))
    thread.start()
    fds = [os.open(path, os.O_RDONLY), os.open(root, os.O_RDONLY)]
    meta, _ = metadata.read(Sys(), fds[0], metadata.Abilities())
    copyist.send(ours, (32, [(tuple(meta._replace(xattrs={})), 0, 1)]), fds)
    close(fds)
    answer = copyist.receive(ours)
    paths = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in descriptors()]
    ours.close()
    thread.join()
    theirs.close()
    assert answer is not None
    close(answer[1])
    assert (len(answer[1]), str(path) in paths) == (1, False)


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
    beside.leave()
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
    for number in range(15):
        journal = root.parent / f"job{number}.db"
        create(root, journal)
        aside = Counting(partial(start_companion, COPYIST), worth=1)
        try:
            with descriptors_closed():
                run(journal, kill_after(rng.randrange(4000)), ALONE, aside=aside)
        except Killed:
            killed += 1
        finally:
            forsake(aside)
        _, summary = run(journal, clocks=ALONE)
        assert trees.manifest(root) == before
        assert summary["files_failed"] == 0
    assert killed > 5


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
