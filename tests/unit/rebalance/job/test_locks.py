"""One job per tree, by whatever path, and no locks of others in the way."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from zconsole.errors import UsageError
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job import locks
from zconsole.rebalance.job.locks import BusyTreeError, Claim, TreeLocks, claim, conflicting_job
from zconsole.system import state_dir
from zconsole.system.mounts import MountPoint
from zconsole.system.state_dir import StateError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs mounts or another user")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    root = tmp_path / "tree"
    (root / "below").mkdir(parents=True)
    return root


def taken(*roots: Path) -> TreeLocks:
    return TreeLocks(Sys(), [os.fsencode(root) for root in roots])


def test_a_lock_of_somebody_on_a_directory_keeps_no_job_waiting(tree: Path) -> None:
    """Every user can flock / and any other directory that is readable."""
    held = [os.open(path, os.O_RDONLY) for path in ("/", "/tmp", tree.parent, tree)]
    for fd in held:
        fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        locks = taken(tree)
        with pytest.raises(BusyTreeError):
            taken(tree)
        locks.close()
    finally:
        for fd in held:
            os.close(fd)


def test_a_job_in_the_way_is_named_and_a_plan_that_tells_of_it_leaves_nothing(tree: Path) -> None:
    below = [os.fsencode(tree / "below")]
    assert conflicting_job(below) is None
    assert not (tree.parent / "state").exists()
    with closing(taken(tree)):
        said = conflicting_job(below)
        with pytest.raises(BusyTreeError) as caught:
            taken(tree / "below")
    assert (
        str(caught.value)
        == said
        == (
            f"another job works in {tree}, which overlaps {tree}/below."
            " Wait for its end, or stop it (zconsole rebalance status)"
        )
    )
    assert conflicting_job(below) is None


@pytest.mark.slow
def test_locks_leave_no_file_and_those_of_the_dead_are_cleared(tree: Path) -> None:
    code = (
        "import os, signal\n"
        "from zconsole.rebalance.engine.syscalls import Sys\n"
        "from zconsole.rebalance.job.locks import TreeLocks\n"
        f"held = TreeLocks(Sys(), [{os.fsencode(tree)!r}])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    died = subprocess.run([sys.executable, "-c", code], check=False)
    assert died.returncode == -signal.SIGKILL
    where = tree.parent / "state/locks"
    (left,) = where.glob("tree-*.lock")
    taken(tree).close()
    assert not left.exists()
    assert [path.name for path in where.iterdir()] == [locks.TURN]


def test_a_lock_that_a_full_disk_refuses_is_named(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(full))
    with pytest.raises(StateError, match=r"/state/locks/tree-\w+\.lock: No space left on device"):
        taken(tree)
    assert not list((tree.parent / "state/locks").glob("tree-*"))


def test_a_turn_that_does_not_come_is_an_error(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken(tree).close()
    held = state_dir.try_lock(tree.parent / "state/locks" / locks.TURN)
    assert held is not None
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    with pytest.raises(BusyTreeError, match=r"locked by another zconsole for over 0\.1 s"):
        taken(tree)
    os.close(held)
    taken(tree).close()


@pytest.mark.parametrize("text", ['{"claims": [{"newer": 1}]}', "[" * 100_000])
def test_a_claim_that_cannot_be_read_is_in_the_way(tree: Path, text: str) -> None:
    with closing(taken(tree)):
        (file,) = (tree.parent / "state/locks").glob("tree-*.lock")
        file.write_text(text)
        with pytest.raises(BusyTreeError, match="of another version"):
            taken(tree.parent)


def test_a_tree_that_was_renamed_is_the_same(tree: Path) -> None:
    with closing(taken(tree)):
        tree.rename(tree.with_name("renamed"))
        with pytest.raises(BusyTreeError):
            taken(tree.with_name("renamed") / "below")


BIND = """
import os, subprocess, sys
from zconsole.errors import ZconsoleError
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job.locks import TreeLocks
from zconsole.system.mounts import MountPoint
tree = sys.argv[1]
for source, target in (("x/y", "seen"), ("z", "x/inner")):
    subprocess.run(["mount", "--bind", f"{tree}/{source}", f"{tree}/{target}"], check=True)
for words in sys.argv[2:]:
    held = []
    try:
        for roots in words.split(" "):
            held.append(TreeLocks(Sys(), [f"{tree}/{r}".encode() for r in roots.split("+")]))
        print(words, "free")
    except ZconsoleError as error:
        print(words, type(error).__name__)
    for lock in held:
        lock.close()
"""


@pytest.mark.slow
@as_root
def test_trees_that_overlap_through_a_bind_mount_are_kept_apart(tmp_path: Path) -> None:
    """``seen`` is ``x/y`` again, and ``x/inner`` is ``z``, which a job on ``x`` does not enter."""
    for name in ("x/y/deep", "x/y2", "x/inner", "z", "seen"):
        (tmp_path / name).mkdir(parents=True)
    expected = {
        "x/y seen": "BusyTreeError",
        "seen x/y": "BusyTreeError",
        "x seen": "BusyTreeError",
        "seen x": "BusyTreeError",
        "x/y/deep seen": "BusyTreeError",
        "seen/deep x": "BusyTreeError",
        "x seen/deep": "BusyTreeError",
        "x/y+seen": UsageError.__name__,
        "x/y2 seen": "free",
        "x x/inner": "free",
        "z x/inner": "BusyTreeError",
        "z x": "free",
    }
    argv = ["unshare", "-m", sys.executable, "-c", BIND, str(tmp_path), *expected]
    environment = {**os.environ, "ZCONSOLE_STATE": str(tmp_path / "state")}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode and "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stderr == ""
    assert dict(line.rsplit(" ", 1) for line in done.stdout.splitlines()) == expected


def test_a_mount_that_is_not_known_leaves_the_inode_numbers(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = MountPoint(1, 0, b"", b"/", b"/elsewhere", b"ext4", b"")
    mounts = iter((None, elsewhere))
    monkeypatch.setattr(locks, "mount_of", lambda number: next(mounts))
    one = claim(Sys(), os.fsencode(tree))
    two = claim(Sys(), os.fsencode(tree / "below"))
    assert (one.inside, two.inside) == (None, None)
    assert one.overlaps(two)
    assert two.overlaps(one)


def test_directories_of_other_filesystems_do_not_overlap() -> None:
    one = Claim("/a", 1, 2, (), "/")
    assert not one.overlaps(Claim("/a/b", 3, 2, (2,), "/"))
    assert one.overlaps(Claim("/elsewhere", 1, 9, (), "/deep/down"))
    assert not Claim("/ab", 1, 5, (), "/ab").overlaps(Claim("/a", 1, 6, (), "/a"))
