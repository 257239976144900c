"""Batches of many small files stay intact whatever happens to the job."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from tests.faults import trees
from tests.faults.harness import (
    ALL,
    ALONE,
    FaultySys,
    Killed,
    Nobody,
    ask,
    create,
    descriptors,
    descriptors_closed,
    kill_after,
    run,
)
from zconsole.rebalance.engine.descriptors import BATCH_FILES
from zconsole.rebalance.engine.workplace import JobClocks

SEVERAL = 40
"""Files per batch, for which the tree makes several batches."""
SMALL_FILES = 150
KILLS = 15 if ALL else 4


@pytest.fixture(params=[BATCH_FILES, SEVERAL], ids=["one", "several"])
def root(area: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of every awkward kind of file, and many small ones with varied metadata."""
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", request.param)
    root, rng = area / "tree", random.Random(1)
    trees.build(root)
    for number in range(SMALL_FILES):
        path = root / f"small{number}"
        path.write_bytes(os.urandom(rng.choice((0, 1, 4096, 9000, 70_000))))
        path.chmod(rng.choice((0o600, 0o644, 0o755, 0o4711)))
        if trees.ROOT:
            os.chown(path, rng.choice((0, 99)), 0)
        os.utime(path, ns=(10**18 + number, 10**18 + 3 * number))
    os.utime(root, ns=(10**18, 10**18 + 5))
    return root


def test_every_file_is_there_and_is_another(root: Path) -> None:
    before, inodes, open_before = trees.manifest(root), trees.inodes(root), len(descriptors())
    create(root, root.parent / "job.db")
    with ThreadPoolExecutor(4) as threads:
        _, summary = run(root.parent / "job.db", None, ALONE, threads)
    assert trees.manifest(root) == before
    assert (summary["files_failed"], summary["files_moved"]) == (0, len(inodes))
    after = trees.inodes(root)
    assert all(after[name] != inode for name, inode in inodes.items())
    assert len(descriptors()) == open_before


def test_a_stop_leaves_the_rest_for_later(root: Path) -> None:
    before, open_before = trees.manifest(root), len(descriptors())
    create(root, root.parent / "job.db")

    def stop(_number: int, name: str) -> None:
        if name == "exchange" and not stopped:
            stopped.append(name)
            ask(root.parent / "job.db", "stop")

    stopped, seconds = list[str](), count()
    clocks = JobClocks(monotonic=lambda: float(next(seconds)), sleep=lambda seconds: None)
    _, summary = run(root.parent / "job.db", FaultySys(stop), clocks, users=Nobody())
    assert summary["stopped_by"] in ("stop", "done")
    assert trees.manifest(root) == before
    assert len(descriptors()) == open_before
    ask(root.parent / "job.db", "run")
    _, summary = run(root.parent / "job.db", None, ALONE)
    assert (summary["files_failed"], summary["stopped_by"]) == (0, "done")
    assert trees.manifest(root) == before


def test_killed_at_any_moment(root: Path) -> None:
    before, rng = trees.manifest(root), random.Random(2)
    killed = 0
    for number in range(KILLS):
        journal = root.parent / f"job{number}.db"
        create(root, journal)
        try:
            with descriptors_closed():
                run(journal, kill_after(rng.randrange(4000)), ALONE)
        except Killed:
            killed += 1
        _, summary = run(journal, clocks=ALONE)
        assert trees.manifest(root) == before
        assert summary["files_failed"] == 0
    assert killed > KILLS / 3


def test_a_killed_command_is_resumed(area: Path) -> None:
    root = area / "tree"
    root.mkdir()
    for number in range(1000 if ALL else 400):
        (root / f"f{number}").write_bytes(b"%d" % number)
    before, inodes = trees.manifest(root), entries(root)
    words = ["rebalance", "run", str(root), "--allow-non-zfs", "--yes", "--engine", "copy"]
    command = [sys.executable, "-m", "zconsole", *words, "--journal", str(area / "job.db")]
    job = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while inodes.items() <= entries(root).items() and job.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    job.send_signal(signal.SIGKILL)
    job.wait()
    run(area / "job.db")
    after = trees.manifest(root)
    # If the job is killed in a call that a busy machine delays, its own change to the directory
    # looks like another process's.
    del before["."], after["."]
    assert after == before


def entries(root: Path) -> dict[str, int]:
    """Return the inode number of every name, without a stat of the inodes."""
    with os.scandir(root) as found:
        return {entry.name: entry.inode() for entry in found}
