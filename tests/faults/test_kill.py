"""Jobs killed after every system call, or failing at every call, lose and leave nothing."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.faults import trees
from tests.faults.harness import (
    ALL,
    ALONE,
    CHANGING,
    FaultySys,
    Killed,
    Place,
    create,
    descriptors_closed,
    fail_at,
    first_of_each,
    kill_after,
    place,
    run,
)
from zconsole.rebalance.engine.item import temporary
from zconsole.rebalance.engine.journal import Intent, Journal, State


class Call(NamedTuple):
    """One system call of a job."""

    name: str
    place: Place
    journal: int
    """Bytes of the journal's log afterwards, which show how much was committed by then."""

    @property
    def changes(self) -> bool:
        return self.name in CHANGING


@dataclass
class Stage:
    """A tree that is moved repeatedly: each job leaves it intact for the next one."""

    area: Path
    before: dict[str, tuple[Any, ...]] = field(init=False)
    calls: list[Call] = field(default_factory=list)
    """System calls of an undisturbed run."""
    jobs: int = 0

    def __post_init__(self) -> None:
        trees.build(self.root)
        self.before = trees.manifest(self.root)
        journal = self.job()
        log = journal.with_name(f"{journal.name}-wal")

        def note(_number: int, name: str, _result: Any) -> None:
            self.calls.append(Call(name, place(), log.stat().st_size))

        run(journal, FaultySys(after=note), ALONE)

    def first_of_each(self, key: Callable[[Call], object]) -> set[int]:
        """Return the numbers of the calls that are the first with their key."""
        return first_of_each(map(key, self.calls))

    @property
    def root(self) -> Path:
        return self.area / "tree"

    def job(self) -> Path:
        """Return the journal of a new job; earlier jobs are forgotten, or each would be asked."""
        shutil.rmtree(self.area / "state", ignore_errors=True)
        self.jobs += 1
        journal = self.area / f"job{self.jobs}.db"
        create(self.root, journal)
        return journal

    def give_times_back(self) -> None:
        """Give every directory its first modification time."""
        for path in (self.root, *filter(Path.is_dir, self.root.rglob("*"))):
            mtime_ns = self.before[str(path.relative_to(self.root))][3]
            os.utime(path, ns=(path.stat().st_atime_ns, mtime_ns))

    def settled(self, journal: Path) -> dict[str, Any]:
        """Resume the job to its end; returns the summary."""
        _, summary = run(journal, clocks=ALONE)
        assert trees.manifest(self.root) == self.before
        assert summary["files_failed"] == 0, summary
        return summary


def test_undisturbed_run_moves_everything_and_changes_nothing(area: Path) -> None:
    root = area / "tree"
    trees.build(root)
    before, inodes = trees.manifest(root), trees.inodes(root)
    create(root, area / "job.db", others=True)
    shown, summary = run(area / "job.db")
    assert trees.manifest(root) == before
    assert (summary["files_failed"], summary["files_moved"]) == (0, len(inodes))
    assert {record["outcome"] for record in shown} == {"moved"}
    after = trees.inodes(root)
    assert all(after[name] != inode for name, inode in inodes.items())


PARTS = range(4 if ALL else 1)
"""Parts into which the calls are divided, so that several processors can share them."""
NAMES = {"exchange", "link", "link_fd", "rename", "unlink"}


def killing(stage: Stage) -> set[int]:
    """Return the calls after which a death leaves something new.

    These are all calls that change a name; of the others (``ioctl`` sets flags), the first from
    each place; and the first after each commit of the journal.
    """
    names = {n for n, call in enumerate(stage.calls) if call.name in NAMES}
    kinds = stage.first_of_each(lambda call: (call.changes or call.name == "ioctl") and call.place)
    return names | kinds | stage.first_of_each(lambda call: call.journal)


def share(stage: Stage, part: int, chosen: set[int]) -> list[int]:
    """Return the calls that a test kills or fails: the chosen ones, or its part of ALL."""
    return [*range(part, len(stage.calls), len(PARTS))] if ALL else sorted(chosen)


@pytest.mark.parametrize("part", PARTS)
def test_killed_after_every_call(area: Path, part: int) -> None:
    stage = Stage(area)
    for number in share(stage, part, killing(stage)):
        journal = stage.job()
        with descriptors_closed(), pytest.raises(Killed):
            run(journal, kill_after(number), ALONE)
        summary = stage.settled(journal)
        told = (number, stage.calls[number], summary["skipped"])
        assert summary["files_moved"] == len(trees.inodes(stage.root)), told


CODES = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EINTR, errno.EACCES)
SHIFTS = range(len(CODES) if ALL else 1)


def failure(journal: Path, number: int, code: int) -> list[int | None]:
    """Run with one failing call; returns the error number that ended the run, if any."""
    try:
        run(journal, fail_at(number, code), ALONE)
    except OSError as error:
        return [error.errno]
    return []


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("shift", SHIFTS)
def test_failed_at_every_call(area: Path, shift: int, part: int) -> None:
    """The first call from each place fails, with errors in turn; with ALL, all calls with all."""
    stage = Stage(area)
    for number in share(stage, part, stage.first_of_each(lambda call: (call.name, call.place))):
        code = CODES[(number + shift) % len(CODES)]
        if (stage.calls[number].name, code) == ("set_times", errno.EACCES):
            code = errno.EIO  # the other one would mean that the directory is not ours
        journal = stage.job()
        with descriptors_closed():
            errors = failure(journal, number, code)
        assert errors in ([], [code])
        if stage.calls[number].name in ("watcher", "watch", "changes"):
            stage.give_times_back()  # directories that cannot be watched keep their new times
        stage.settled(journal)


def test_what_a_death_left_in_many_directories_is_settled_under_a_low_limit(area: Path) -> None:
    for number in range(300):
        (area / f"tree/d{number}").mkdir(parents=True)
        (area / f"tree/d{number}/f").write_bytes(b"x")
    create(area / "tree", area / "job.db")
    journal = Journal.open(area / "job.db")
    rows = [row for _, row in journal.todo((-1, -1, -1), 300)]
    intents = [
        Intent(row.number, State.CREATING, temporary("0" * 16, row.number), row.ino, 0, b"")
        for row in rows
    ]
    journal.record((), intents)
    journal.close()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        _, summary = run(area / "job.db", clocks=ALONE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert (summary["files_moved"], summary["files_failed"]) == (300, 0)


@pytest.mark.parametrize("changed", [True, False])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_recovery_looks_at_the_names_of_one_file_only_while_it_must(
    area: Path, share: float, changed: bool
) -> None:
    """A share of its names is replaced, and the copy has been changed since."""
    names = 60
    root = area / "tree"
    root.mkdir()
    (root / "name0").write_bytes(b"of many names")
    for number in range(1, names):
        os.link(root / "name0", root / f"name{number}")
    journal = area / "job.db"
    create(root, journal)
    original = (root / "name0").stat().st_ino
    dying, replaced = FaultySys(), iter(range(1, names + 1))

    def after(_: int, name: str, __: Any) -> None:
        if name == "exchange" and next(replaced) == names * share:
            dying.die()

    dying.after = after
    with descriptors_closed(), pytest.raises(Killed):
        run(journal, dying, ALONE)
    if changed:
        next(p for p in root.glob("name*") if p.stat().st_ino != original).chmod(0o640)
    resumed = FaultySys()
    _, summary = run(journal, resumed, ALONE)
    assert summary["files_moved"] == names
    assert {path.stat().st_nlink for path in root.iterdir()} == {names}
    assert resumed.calls.count("lstat") < 20 * names
