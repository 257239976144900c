"""Exchanges that are undone: nobody who comes at that moment loses a write, a link or a name."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from pathlib import Path

import pytest

from tests.faults.harness import ALONE, FaultySys, Killed, Nobody, create, descriptors_closed, run
from tests.faults.test_changes import (
    TICK,
    Late,
    killed_and_changed,
    killed_between_links,
)
from tests.faults.test_meddlers import BASE, WRITE, Meddler, contents, tree_of
from zconsole.rebalance.engine.journal import Journal, State
from zconsole.rebalance.engine.workplace import JobClocks


class Preempted(Meddler):
    """A writer that has looked a name up, and can open it only when somebody sleeps."""

    def __init__(self) -> None:
        super().__init__()
        self.path = -1

    def look_up(self, path: Path) -> None:
        self.path = os.open(path, os.O_PATH)

    def go_on(self, seconds: float = 0.0) -> None:
        """Open the file that was looked up, at most once."""
        if self.path >= 0:
            self.open(f"/proc/self/fd/{self.path}")
            os.close(self.path)
            self.path = -1


def reasons(journal: Path, state: State = State.FAILED) -> str:
    """Return the reasons for files in a state, by default those that failed."""
    with contextlib.closing(Journal.open(journal)) as opened:
        return "\n".join(opened.reasons(state))


def test_a_writer_kept_from_opening_the_copy_loses_nothing(area: Path) -> None:
    """The name is given back between the writer's look-up and its open."""
    root = tree_of(area, "a")
    create(root, area / "job.db")
    writer, restored = Preempted(), []
    sys = writer.sys(
        before={("exchange", 2): lambda: writer.look_up(root / "a")},
        after={("exchange", 2): lambda: restored.append(True)},
    )
    clocks = JobClocks(sleep=lambda _: writer.go_on() if restored else None)
    _, summary = run(area / "job.db", sys, clocks, users=Late(root / "a"))
    writer.go_on()
    writer.write()
    assert sorted(contents(root).values()) == [BASE, BASE + WRITE]
    assert (root / "a").read_bytes() == BASE
    assert summary["files_failed"] == 1


def test_recovery_waits_for_a_writer_kept_from_opening_the_copy(area: Path) -> None:
    root = killed_and_changed(area)
    writer, restored = Preempted(), []
    sys = writer.sys(
        before={("exchange", 1): lambda: writer.look_up(root / "a")},
        after={("exchange", 1): lambda: restored.append(True)},
    )
    clocks = JobClocks(sleep=lambda _: writer.go_on() if restored else None)
    run(area / "job.db", sys, clocks, users=Nobody())
    writer.go_on()
    writer.write()
    assert sorted(contents(root).values()) == [BASE, BASE + WRITE]


def test_many_files_are_taken_back_with_one_wait(area: Path) -> None:
    names = [f"f{number}" for number in range(20)]
    root = tree_of(area, *names)
    create(root, area / "job.db")
    slept: list[float] = []
    now = [0.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    clocks = JobClocks(monotonic=lambda: now[0], sleep=sleep)
    users = Late(*map(root.joinpath, names))
    _, summary = run(area / "job.db", FaultySys(), clocks, users=users)
    assert summary["skipped"] == {"in use by a mount": 20}
    assert len([each for each in slept if each > 0.05]) == 2
    assert contents(root) == dict.fromkeys(names, BASE)


def test_a_rename_just_before_the_exchange_back_is_followed(area: Path) -> None:
    root = tree_of(area, "a")
    inode = (root / "a").stat().st_ino
    create(root, area / "job.db")
    sys = Meddler().sys(before={("exchange", 2): lambda: (root / "a").rename(root / "c")})
    shown, summary = run(area / "job.db", sys, ALONE, users=Late(root / "a"))
    assert {path.name: path.stat().st_ino for path in root.iterdir()} == {"c": inode}
    assert [(line["outcome"], line["reason"]) for line in shown] == [
        ("skipped", "renamed meanwhile")
    ]
    assert summary["files_failed"] == 0


def test_a_rename_before_the_file_is_taken_back_is_followed(area: Path) -> None:
    root = tree_of(area, "a")
    inode = (root / "a").stat().st_ino
    create(root, area / "job.db")
    sys = Meddler().sys(after={("exchange", 1): lambda: (root / "a").rename(root / "c")})
    shown, _ = run(area / "job.db", sys, ALONE, users=Late(root / "a"))
    assert {path.name: path.stat().st_ino for path in root.iterdir()} == {"c": inode}
    assert [line["reason"] for line in shown] == ["renamed meanwhile"]


@pytest.mark.parametrize("exchanges", [1, 2])
def test_recovery_splits_no_link_made_to_the_copy(area: Path, exchanges: int) -> None:
    root = killed_between_links(area, exchanges)
    original = next(root.glob(".zc-*")).stat().st_ino
    copied = next(name for name in ("a", "b") if (root / name).stat().st_ino != original)
    (root / "c").hardlink_to(root / copied)
    _, summary = run(area / "job.db", clocks=ALONE)
    assert contents(root) == dict.fromkeys("abc", BASE)
    assert len({path.stat().st_ino for path in root.iterdir()}) == 1
    assert summary["files_failed"] == 0


def test_recovery_tells_of_a_link_made_to_a_copy_whose_original_was_changed(area: Path) -> None:
    root = killed_between_links(area, 1)
    original = next(root.glob(".zc-*"))
    copied = next(n for n in ("a", "b") if not (root / n).samefile(original))
    (root / "c").hardlink_to(root / copied)
    time.sleep(TICK)
    original.chmod(0o640)
    _, summary = run(area / "job.db", clocks=ALONE)
    assert summary["files_failed"] > 0
    assert "linked during the move; the other version is" in reasons(area / "job.db")
    assert (root / "c").samefile(root / copied)


def test_recovery_tells_of_a_link_made_to_a_copy_that_was_taken_back(area: Path) -> None:
    """Killed between two removals of its temporary names; all others have the original."""
    root = tree_of(area, "a")
    (root / "b").hardlink_to(root / "a")
    create(root, area / "job.db")
    original = (root / "a").stat().st_ino

    def link() -> None:
        copy = next(name for name in ("a", "b") if (root / name).stat().st_ino != original)
        (root / "c").hardlink_to(root / copy)

    sys = Meddler().sys(before={("exchange", 4): link})
    dying = sys.after

    def after(number: int, name: str, result: object) -> None:
        dying(number, name, result)
        if name == "exchange" and sys.calls.count("exchange") == 4:
            sys.die()

    sys.after = after
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job.db", sys, ALONE, users=Late(root / "a"))
    linked = (root / "c").stat().st_ino
    one = next(path for path in root.glob(".zc-*") if path.stat().st_ino == linked)
    one.unlink()  # like a death after the first removal
    _, summary = run(area / "job.db", clocks=ALONE)
    assert summary["files_failed"] > 0
    assert "linked during the move; the other version is" in reasons(area / "job.db")


def test_recovery_tells_of_a_copy_renamed_whose_original_was_changed(area: Path) -> None:
    root = killed_and_changed(area)
    (root / "a").rename(root / "c")
    _, summary = run(area / "job.db", clocks=ALONE)
    assert summary["files_failed"] == 1
    assert "renamed during the move; the other version is" in reasons(area / "job.db")
    modes = {path.stat().st_mode & 0o777 for path in root.iterdir()}
    assert (len(contents(root)), 0o640 in modes) == (2, True)


def test_a_report_names_no_other_version_where_there_is_none(area: Path) -> None:
    """The copy is written to under one name, and cannot be given the other."""
    root = tree_of(area, "a")
    (root / "b").hardlink_to(root / "a")
    create(root, area / "job.db")
    original = (root / "a").stat().st_ino

    def fail_to_link() -> None:
        next(p for p in root.iterdir() if p.stat().st_ino != original).chmod(0o600)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    run(area / "job.db", Meddler().sys(before={("link_fd", 1): fail_to_link}), ALONE)
    with contextlib.closing(Journal.open(area / "job.db")) as journal:
        left = {name: reason for _, name, _, reason in journal.left_out(9)}
    others = [(reason or "").partition("other version is ")[2] for reason in left.values()]
    assert len(left) == 2
    assert [name for name in others if name] == [path.name for path in root.glob(".zc-*")]
    assert "another name of it was written to during the move" in left.values()


def test_an_original_is_given_back_where_others_removed_our_name_of_it(area: Path) -> None:
    root = tree_of(area, "a")
    (root / "b").hardlink_to(root / "a")
    create(root, area / "job.db")
    original = (root / "a").stat().st_ino

    def tidy_up() -> None:
        next(path for path in root.glob(".zc-*") if path.stat().st_ino == original).unlink()

    run(area / "job.db", Meddler().sys(after={("exchange", 1): tidy_up}), ALONE)
    assert contents(root) == {"a": BASE, "b": BASE}
    assert (root / "a").samefile(root / "b")


@pytest.mark.parametrize(
    ("call", "number"),
    [("open_new", 1), ("link_fd", 1), ("exchange", 1), ("exchange", 2), ("unlink", 1)],
)
def test_nothing_is_left_by_a_call_that_fails_and_takes_effect(
    area: Path, call: str, number: int
) -> None:
    """Network filesystems do so, and any filesystem whose disk fails at that moment."""
    root = tree_of(area, "a")
    (root / "b").hardlink_to(root / "a")
    create(root, area / "job.db")

    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with descriptors_closed():
        run(area / "job.db", Meddler().sys(after={(call, number): fail}), ALONE)
    left = [path.name for path in root.glob(".zc-*")]
    assert not [name for name in left if name not in reasons(area / "job.db")]
    _, summary = run(area / "job.db", clocks=ALONE)
    assert contents(root) == {"a": BASE, "b": BASE}
    assert (root / "a").samefile(root / "b")
    assert summary["files_moved"] == 2


class Taken(FaultySys):
    """Somebody creates a file under the temporary name first."""

    def open_new(self, directory: int, name: bytes, mode: int) -> int:
        os.close(super().open_new(directory, name, mode))
        return super().open_new(directory, name, mode)


def test_a_file_of_others_at_a_temporary_name_is_not_taken_for_a_copy(area: Path) -> None:
    root = tree_of(area, "a")
    create(root, area / "job.db")
    run(area / "job.db", Taken(), ALONE)
    assert sorted(contents(root).values()) == [b"", BASE]
