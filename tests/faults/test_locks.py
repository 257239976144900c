"""Two processes that lock a file by name never both hold their own lock for long.

The engine doesn't see the descriptors of these processes, as an ordinary user doesn't see those of
others: only /proc/locks shows them.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.beside import beside
from tests.faults.harness import (
    ALONE,
    FaultySys,
    Killed,
    Nobody,
    create,
    descriptors_closed,
    run,
)
from tests.faults.test_given_up import COPIED, Seen
from zconsole.rebalance.engine import file_locks
from zconsole.rebalance.engine.copy_engine import LOCK_LOOK, LOCK_REST
from zconsole.rebalance.engine.file_locks import FilesInUse
from zconsole.rebalance.engine.workplace import JobClocks

OFD_SETLK = 37
"""F_OFD_SETLK (asm-generic/fcntl.h)."""


def flock(file: int) -> None:
    fcntl.flock(file, fcntl.LOCK_EX)


def posix(file: int) -> None:
    fcntl.lockf(file, fcntl.LOCK_SH)


def of_description(file: int) -> None:
    lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
    fcntl.fcntl(file, OFD_SETLK, lock)


def tree(area: Path) -> Path:
    (area / "tree").mkdir()
    (area / "tree/lock").write_bytes(b"me")
    create(area / "tree", area / "job.db")
    return area / "tree/lock"


@pytest.mark.parametrize("take", [flock, posix, of_description])
@pytest.mark.parametrize("moment", ["before the exchange", "after it"])
def test_a_locked_inode_gets_its_name_back(area: Path, take: Any, moment: str) -> None:
    """It is opened read-only, which breaks no lease, after the engine has looked for locks."""
    path = tree(area)
    inode = path.stat().st_ino
    opened: list[int] = []
    at_the_grace: list[int] = []

    def locks() -> None:
        take(opened[0])

    with beside(lambda: opened.append(os.open(path, os.O_RDONLY)), locks) as other:
        waiting = ["exchange"]

        def fault(_: int, name: str) -> None:
            if moment == "before the exchange" and name in waiting:
                waiting.remove(name)
                other.go()

        def after(_: int, name: str, __: Any) -> None:
            if moment == "after it" and name in waiting:
                waiting.remove(name)
                other.go()

        sleep = lambda _: at_the_grace.append(path.stat().st_ino)  # noqa: E731
        clocks = JobClocks(sleep=sleep)
        shown, _ = run(area / "job.db", FaultySys(fault, after), clocks, users=Nobody())
    assert [(r["outcome"], r["reason"]) for r in shown] == [("skipped", "locked")]
    assert path.stat().st_ino == inode
    assert set(at_the_grace) == {inode}  # already during the grace period
    assert [each.name for each in path.parent.iterdir()] == ["lock"]


def test_a_file_locked_while_it_is_copied_keeps_its_name(area: Path) -> None:
    path = tree(area)
    opened: list[int] = []
    with beside(
        lambda: opened.append(os.open(path, os.O_RDONLY)), lambda: flock(opened[0])
    ) as other:
        begun = [other.go]
        sys = FaultySys(lambda _, name: begun.pop()() if name == "syncfs" and begun else None)
        shown, _ = run(area / "job.db", sys, ALONE)
    assert [(r["outcome"], r["reason"]) for r in shown] == [("skipped", "locked")]
    assert "exchange" not in sys.calls


def test_a_file_that_is_in_use_and_locked_is_called_locked(area: Path) -> None:
    """It became locked after its copy was started: a resumed job tries it again."""
    path = tree(area)
    opened: list[int] = []
    with beside(
        lambda: opened.append(os.open(path, os.O_RDONLY)), lambda: flock(opened[0])
    ) as other:

        def _used(look: int) -> list[Path]:
            if look != COPIED:
                return []
            other.go()
            return [path]

        shown, _ = run(area / "job.db", clocks=ALONE, users=Seen(_used))
    assert [(r["outcome"], r["reason"]) for r in shown] == [("skipped", "locked")]


class Looking(Nobody):
    """Somebody acts at each look for users, after the names were exchanged."""

    def __init__(self, sys: FaultySys, act: Callable[[int], None]) -> None:
        super().__init__()
        self.sys, self.act = sys, act

    def look(self, *_: object, **__: object) -> FilesInUse:
        self.act(self.sys.calls.count("exchange"))
        return super().look()


def test_a_name_is_given_back_to_a_lock_before_processes_are_looked_at(area: Path) -> None:
    """The look may take long with many processes; meanwhile another one may lock the copy."""
    path = tree(area)
    opened: list[int] = []
    exchanged: list[int] = []
    with beside(
        lambda: opened.append(os.open(path, os.O_RDONLY)), lambda: flock(opened[0])
    ) as other:
        begun = [other.go]
        sys = FaultySys(lambda _, name: begun.pop()() if name == "exchange" and begun else None)
        clocks, users = JobClocks(sleep=lambda _: None), Looking(sys, exchanged.append)
        shown, _ = run(area / "job.db", sys, clocks, users=users)
    assert [(r["outcome"], r["reason"]) for r in shown] == [("skipped", "locked")]
    assert set(exchanged) == {0, 2}


def test_a_lock_taken_while_processes_are_looked_at_gives_the_name_back(area: Path) -> None:
    path = tree(area)
    inode = path.stat().st_ino
    opened: list[int] = []
    with beside(
        lambda: opened.append(os.open(path, os.O_RDONLY)), lambda: flock(opened[0])
    ) as other:
        begun, sys = [other.go], FaultySys()
        users = Looking(sys, lambda exchanged: begun.pop()() if exchanged and begun else None)
        shown, _ = run(area / "job.db", sys, JobClocks(sleep=lambda _: None), users=users)
    assert [(r["outcome"], r["reason"]) for r in shown] == [("skipped", "locked")]
    assert path.stat().st_ino == inode


def test_a_lock_taken_during_the_grace_gives_the_name_back(area: Path) -> None:
    path = tree(area)
    inode = path.stat().st_ino
    opened: list[int] = []
    with beside(
        lambda: opened.append(os.open(path, os.O_RDONLY)), lambda: flock(opened[0])
    ) as other:
        begun = [other.go]
        clocks = JobClocks(sleep=lambda _: begun.pop()() if begun else None)
        shown, _ = run(area / "job.db", clocks=clocks, users=Nobody())
    assert [(r["outcome"], r["reason"]) for r in shown] == [("skipped", "locked")]
    assert path.stat().st_ino == inode


@pytest.mark.parametrize("call", [0.001, 2 * LOCK_LOOK])
def test_a_lock_is_seen_while_other_names_are_replaced(area: Path, call: float) -> None:
    """A batch of many files takes a while; here, every call takes ``call`` seconds."""
    path = tree(area)
    (area / "job.db").unlink()
    for number in range(60):
        (path.parent / f"other{number}").write_bytes(b"x")
    create(path.parent, area / "job.db")
    inode, now, opened = path.stat().st_ino, [0.0], list[int]()
    begun, exchanged, back = [True], [0], list[int]()
    with beside(
        lambda: opened.append(os.open(path, os.O_RDONLY)), lambda: flock(opened[0])
    ) as other:

        def after(_: int, name: str, __: Any) -> None:
            now[0] += call
            if name == "exchange":
                exchanged[0] += 1
                if path.stat().st_ino != inode and begun:
                    begun.pop()
                    other.go()
                elif not begun and path.stat().st_ino == inode:
                    back.append(exchanged[0])

        clocks = JobClocks(monotonic=lambda: now[0], sleep=lambda _: None)
        run(area / "job.db", FaultySys(after=after), clocks, users=Nobody())
    assert back[0] < exchanged[0] / 2
    assert path.stat().st_ino == inode


def test_checks_for_locks_leave_most_of_the_time_to_replacing(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With thousands of leases, on a slow machine, one check takes as long as many calls."""
    path = tree(area)
    (area / "job.db").unlink()
    for number in range(100):
        (path.parent / f"other{number}").write_bytes(b"x")
    create(path.parent, area / "job.db")
    now, looking, spent = [0.0], [0.0], list[tuple[float, float]]()

    def look() -> frozenset[tuple[int, int]]:
        now[0] += 0.03
        looking[0] += 0.03
        return frozenset()

    def after(_: int, name: str, __: Any) -> None:
        now[0] += 0.01
        if name == "exchange":
            spent.append((now[0], looking[0]))

    monkeypatch.setattr(file_locks, "locked_inodes", look)
    clocks = JobClocks(monotonic=lambda: now[0], sleep=lambda _: None)
    run(area / "job.db", FaultySys(after=after), clocks, users=Nobody())
    (began, looked_before), (ended, looked) = spent[0], spent[-1]
    assert 0.03 < looked - looked_before < (ended - began) / LOCK_REST


def test_a_name_that_is_given_back_slowly_delays_no_check(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the exchange that gives it back waits 5 s, as for a transaction of a busy pool."""
    path = tree(area)
    (area / "job.db").unlink()
    for number in range(2500):
        (path.parent / f"other{number}").write_bytes(b"x")
    create(path.parent, area / "job.db")
    status, now, checks, given_back = path.stat(), [0.0], list[float](), list[float]()

    def is_replaced() -> bool:
        return path.stat().st_ino != status.st_ino

    def look() -> frozenset[tuple[int, int]]:
        now[0] += 0.001
        checks.append(now[0])
        return frozenset({(status.st_dev, status.st_ino)} if is_replaced() else ())

    def after(_: int, name: str, __: Any) -> None:
        now[0] += 0.001
        if name == "exchange" and is_replaced():
            given_back.clear()
        elif name == "exchange" and checks and not given_back:
            now[0] += 5.0
            given_back.append(now[0])

    monkeypatch.setattr(file_locks, "locked_inodes", look)
    clocks = JobClocks(monotonic=lambda: now[0], sleep=lambda _: None)
    run(area / "job.db", FaultySys(after=after), clocks, users=Nobody())
    assert path.stat().st_ino == status.st_ino
    assert min(t for t in checks if t > given_back[0]) - given_back[0] < 0.1


def test_two_locks_on_two_versions_keep_both(area: Path) -> None:
    """One lock is on the old inode, one on the copy: the report names both."""
    path = tree(area)
    opened: list[int] = []

    def locks_both() -> None:
        flock(opened[0])
        opened.append(os.open(path, os.O_RDONLY))
        flock(opened[1])

    with beside(lambda: opened.append(os.open(path, os.O_RDONLY)), locks_both) as other:
        begun = [other.go]

        def after(_: int, name: str, __: Any) -> None:
            if name == "exchange" and begun:
                begun.pop()()

        shown, _ = run(area / "job.db", FaultySys(after=after), users=Nobody())
    ((outcome, reason),) = [(r["outcome"], r["reason"]) for r in shown]
    assert outcome == "failed"
    assert reason.startswith("both locked; the other version is .zc-")
    assert len(list(path.parent.iterdir())) == 2


def test_a_copy_that_is_locked_when_its_original_is_back_is_kept(area: Path) -> None:
    """The copy was opened by its name while it had that."""
    path = tree(area)
    opened: list[int] = []

    def lock_one_and_open_the_other() -> None:
        flock(opened[0])
        opened.append(os.open(path, os.O_RDONLY))

    steps = (lock_one_and_open_the_other, lambda: flock(opened[1]))
    with beside(lambda: opened.append(os.open(path, os.O_RDONLY)), *steps) as other:
        begun = [other.go]

        def after(_: int, name: str, __: Any) -> None:
            if name == "exchange" and begun:
                begun.pop()()

        waits = [other.go]
        clocks = JobClocks(sleep=lambda _: waits.pop()() if waits and not begun else None)
        shown, _ = run(area / "job.db", FaultySys(after=after), clocks, users=Nobody())
    ((outcome, reason),) = [(r["outcome"], r["reason"]) for r in shown]
    assert outcome == "failed"
    assert reason.startswith("locked during the move; the other version is .zc-")
    assert len(list(path.parent.iterdir())) == 2


def test_recovery_gives_a_locked_inode_its_name_back(area: Path) -> None:
    path = tree(area)
    inode = path.stat().st_ino
    opened: list[int] = []
    system = FaultySys()

    def after(_: int, name: str, __: Any) -> None:
        if name == "exchange":
            system.die()

    system.after = after
    with beside(
        lambda: opened.append(os.open(path, os.O_RDONLY)), lambda: flock(opened[0])
    ) as other:
        with descriptors_closed(), pytest.raises(Killed):
            run(area / "job.db", system, users=Nobody())
        assert path.stat().st_ino != inode
        other.go()
        shown, _ = run(area / "job.db", users=Nobody())
    assert [(r["outcome"], r["reason"]) for r in shown] == [("skipped", "locked")]
    assert path.stat().st_ino == inode
