"""Names of one file that a death split: recovery joins them, or the report says it could not."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.faults.harness import ALONE, FaultySys, Killed, Nobody, create, descriptors_closed, run
from tests.faults.test_changes import Late, killed_between_links
from tests.faults.test_dirtimes import Unreadable
from tests.faults.test_meddlers import BASE, WRITE, Meddler, contents, save, tree_of
from tests.faults.test_recovered_moments import Coming
from tests.faults.test_resumed_changes import Later
from tests.faults.test_taken_back import Preempted, reasons
from zconsole.rebalance.engine.file_locks import FilesInUse
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.recovery import Recovery
from zconsole.rebalance.engine.swap import GRACE
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.workplace import JobClocks


class Left(NamedTuple):
    """State after a death: the names in the order in which recovery settles them."""

    root: Path
    names: list[Path]
    aside: list[Path]
    """Their temporary names."""


def left(area: Path, exchanges: int, names: str = "ab") -> Left:
    """Return a file of several names, the first of which had been replaced."""
    return found(area, killed_between_links(area, exchanges, names))


def found(area: Path, root: Path) -> Left:
    with closing(Journal.open(area / "job.db")) as journal:
        rows = journal.unfinished()
    rows.sort(key=lambda row: (root / os.fsdecode(row.name)).stat().st_ino == row.old)
    temps = [root / os.fsdecode(row.temp or b"") for row in rows]
    return Left(root, [root / os.fsdecode(row.name) for row in rows], temps)


def one_file(names: list[Path]) -> bool:
    return len({name.stat().st_ino for name in names}) == 1


def failing(*calls: tuple[str, int]) -> FaultySys:
    """Return system calls of which some fail."""

    def _fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    return Meddler().sys(before=dict.fromkeys(calls, _fail))


def test_all_names_follow_one_whose_original_is_gone(area: Path) -> None:
    """A power cut that undoes an exchange, and not a removal elsewhere, leaves this."""
    dead = left(area, 2, "abc")
    dead.aside[0].unlink()
    _, summary = run(area / "job.db", clocks=ALONE)
    assert contents(dead.root) == dict.fromkeys("abc", BASE)
    assert one_file(dead.names)
    assert (summary["files_moved"], summary["files_failed"]) == (3, 0)


def test_each_of_many_names_is_looked_at_as_often_as_one_of_few(area: Path) -> None:
    """A file may have thousands of names."""
    looks = []
    for names in ("abcd", "abcdefgh", "abcdefghijkl"):
        tree = area / names
        tree.mkdir()
        dead, sys = left(tree, len(names), names), FaultySys()
        run(tree / "job.db", sys, ALONE)
        assert one_file(dead.names)
        looks.append(sys.calls.count("lstat"))
    few, more, many = looks
    assert many - more == more - few


def test_a_name_whose_original_could_not_be_removed_has_not_moved_for_good(area: Path) -> None:
    """Then the original turns out to be in use, and the next recovery settles the rest."""
    dead = left(area, 2)
    run(area / "job.db", failing(("unlink", 1)), ALONE, users=Later(dead.aside[0].stat()))
    _, summary = run(area / "job.db", clocks=ALONE)
    assert contents(dead.root) == dict.fromkeys("ab", BASE)
    assert one_file(dead.names)
    assert summary["files_failed"] == 0


def test_a_link_made_to_a_copy_counts_where_another_call_fails(area: Path) -> None:
    dead = left(area, 2, "abc")
    (dead.root / "d").hardlink_to(dead.names[0])
    for sys in (failing(("link_fd", 1)), FaultySys()):
        run(area / "job.db", sys, ALONE)
        assert one_file([*dead.names, dead.root / "d"])
    assert contents(dead.root) == dict.fromkeys("abcd", BASE)


class Unlisted(FaultySys):
    """A name that cannot be looked up the first time."""

    def __init__(self, name: str) -> None:
        self.name, self.told = os.fsencode(name), False
        super().__init__()

    def lstat(self, directory: int, name: bytes) -> os.stat_result:
        if name == self.name and not self.told:
            self.told = True
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().lstat(directory, name)


@pytest.mark.parametrize(
    "sys",
    [lambda first, _: Unreadable(first.parent.name, 2), lambda _, second: Unlisted(second.name)],
    ids=["directory of the first", "name of the second"],
)
def test_no_name_is_queued_before_one_that_cannot_be_read_at_first(
    area: Path, sys: Callable[[Path, Path], FaultySys]
) -> None:
    """The second has a changed copy; a power cut has undone what was done to the first."""
    root, dying = area / "tree", FaultySys()
    for name in ("a", "b"):
        (root / name).mkdir(parents=True)
    (root / "a" / "a").write_bytes(BASE)
    (root / "b" / "b").hardlink_to(root / "a" / "a")
    create(root, area / "job.db")
    dying.after = lambda _, name, __: (
        dying.die() if name == "exchange" and dying.calls.count("exchange") == 2 else None
    )
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job.db", dying, ALONE)
    with closing(Journal.open(area / "job.db")) as journal:
        rows = journal.unfinished()
    first, second = (root / row.name.decode() / row.name.decode() for row in rows)
    (first.parent / os.fsdecode(rows[0].temp or b"")).replace(first)
    second.chmod(0o640)
    run(area / "job.db", sys(first, second), ALONE)
    _, summary = run(area / "job.db", clocks=ALONE)
    assert one_file([first, second])
    assert first.stat().st_mode & 0o777 == 0o640
    assert not list(root.glob("*/.zc-*"))
    assert (summary["files_moved"], summary["files_failed"]) == (2, 0)


class Both(Nobody):
    """Somebody uses the copy, and from the third look on the original, too."""

    def __init__(self, *files: Path) -> None:
        super().__init__()
        self.files = [(status.st_dev, status.st_ino) for status in map(Path.stat, files)]
        self.looks = 0

    def recent(self) -> FilesInUse:
        return self.look()

    def look(self, *_: object, **__: object) -> FilesInUse:
        self.looks += 1
        used = dict.fromkeys(self.files[: 1 + (self.looks > 2)], "")
        self.last = replace(super().look(), mounted=used)
        return self.last


def test_a_name_that_recovery_gave_a_copy_is_no_link_of_others(area: Path) -> None:
    """The third name follows a copy in use; then the original turns out to be in use, too."""
    dead = left(area, 2, "abc")
    users = Both(dead.names[0], dead.aside[0])
    run(area / "job.db", clocks=ALONE, users=users)
    assert one_file(dead.names)
    assert "used during the move; the other version is" in reasons(area / "job.db")
    assert "linked" not in reasons(area / "job.db")


def test_an_original_that_recovery_put_aside_has_no_names_of_others(area: Path) -> None:
    """One name was saved over, and the last follows a copy that was changed."""
    dead = left(area, 2, "abc")
    saved, copied, last = dead.names
    save(dead.root, saved.name, b"saved\n")
    copied.chmod(0o640)
    _, summary = run(area / "job.db", clocks=ALONE)
    assert one_file([copied, last])
    assert saved.read_bytes() == b"saved\n"
    assert dead.aside[0].name in reasons(area / "job.db")
    assert (summary["files_moved"], summary["files_failed"]) == (2, 1)


def test_a_link_made_to_an_original_between_two_removals_is_told_of(area: Path) -> None:
    dead = left(area, 2)
    linked = {("unlink", 1): lambda: (dead.root / "c").hardlink_to(dead.aside[1])}
    _, summary = run(area / "job.db", Meddler().sys(after=linked), ALONE)
    assert one_file(dead.names)
    assert not (dead.root / "c").samefile(dead.names[0])
    assert summary["files_failed"] == 1
    assert dead.aside[1].name in reasons(area / "job.db")


def test_an_original_changed_once_another_name_has_moved_is_told_of(area: Path) -> None:
    dead = left(area, 1)
    dead.aside[0].unlink()
    dead.names[1].chmod(0o640)
    _, summary = run(area / "job.db", clocks=ALONE)
    assert "no longer one file with its other names" in reasons(area / "job.db")
    assert summary["files_failed"] == 1
    assert dead.names[1].stat().st_mode & 0o777 == 0o640


def test_an_original_changed_once_one_of_its_names_is_gone_is_kept(area: Path) -> None:
    dead = left(area, 2)
    dead.aside[0].unlink()
    dead.aside[1].chmod(0o640)
    run(area / "job.db", clocks=ALONE)
    assert dead.aside[1].stat().st_mode & 0o777 == 0o640
    assert dead.aside[1].name in reasons(area / "job.db")


@pytest.fixture
def taken_back(area: Path) -> Left:
    """Both names have the original again, and both temporary names the copy."""
    root = tree_of(area, "a")
    (root / "b").hardlink_to(root / "a")
    create(root, area / "job.db")
    sys = FaultySys()

    def _after(_: int, name: str, __: Any) -> None:
        if name == "exchange" and sys.calls.count("exchange") == 4:
            sys.die()

    sys.after = _after
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job.db", sys, ALONE, users=Late(root / "a"))
    return found(area, root)


def test_a_temporary_name_that_cannot_be_removed_is_still_one_of_ours(
    area: Path, taken_back: Left
) -> None:
    run(area / "job.db", failing(("unlink", 1)), ALONE)
    assert "linked" not in reasons(area / "job.db")
    assert not taken_back.aside[1].exists()


def test_a_link_made_to_a_copy_between_two_removals_is_told_of(
    area: Path, taken_back: Left
) -> None:
    linked = {("unlink", 1): lambda: (taken_back.root / "c").hardlink_to(taken_back.aside[1])}
    run(area / "job.db", Meddler().sys(after=linked), ALONE)
    assert "linked during the move; the other version is" in reasons(area / "job.db")
    assert taken_back.aside[1].samefile(taken_back.root / "c")


def linked_elsewhere(area: Path) -> Left:
    """Return a copy that somebody has linked: all names must follow it."""
    dead = left(area, 1)
    (dead.root / "c").hardlink_to(dead.names[0])
    return dead


def moved_in_part(area: Path, exchanges: int, names: str) -> Left:
    """Return the result of a power cut that undid an exchange, and not a removal elsewhere."""
    dead = left(area, exchanges, names)
    dead.aside[0].unlink()
    return dead


FOLLOWING: dict[str, Callable[[Path], Left]] = {
    "a link": linked_elsewhere,
    "another name": lambda area: moved_in_part(area, 2, "abc"),
    "the only other name": lambda area: moved_in_part(area, 1, "ab"),
}


@pytest.mark.parametrize("case", FOLLOWING)
def test_recovery_waits_for_a_writer_kept_from_opening_a_name_that_follows(
    area: Path, case: str
) -> None:
    """The name gets the copy between the writer's look-up and its open."""
    dead = FOLLOWING[case](area)
    writer, replaced = Preempted(), list[bool]()
    sys = writer.sys(
        before={("exchange", 1): lambda: writer.look_up(dead.names[-1])},
        after={("exchange", 1): lambda: replaced.append(True)},
    )
    clocks = JobClocks(sleep=lambda _: writer.go_on() if replaced else None)
    run(area / "job.db", sys, clocks, users=Nobody())
    writer.go_on()
    writer.write()
    assert one_file(dead.names)
    kept = [path for path in dead.aside if path.exists()]
    assert {path.read_bytes() for path in kept} == {BASE + WRITE}
    assert all(path.name in reasons(area / "job.db") for path in kept)


@pytest.mark.parametrize("case", FOLLOWING)
def test_recovery_looks_for_users_once_a_name_follows(area: Path, case: str) -> None:
    """A user who came while it waited holds the original."""
    dead, users, replaced = FOLLOWING[case](area), Coming(), list[bool]()
    sys = Meddler().sys(after={("exchange", 1): lambda: replaced.append(True)})

    def _sleep(_seconds: float) -> None:
        if replaced:
            users.come(dead.aside[-1])

    run(area / "job.db", sys, JobClocks(sleep=_sleep), users=users)
    assert one_file(dead.names)
    assert f"during the move; the other version is {dead.aside[-1].name}" in reasons(
        area / "job.db"
    )
    assert dead.aside[-1].exists()


def test_names_that_followed_are_given_back_where_only_the_original_is_used_then(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever linked the copy has removed that link by then. One recovery does all of it."""
    dead, users, replaced = linked_elsewhere(area), Coming(), list[bool]()
    unfinished, recover = list[int](), Recovery.run

    def _recovered(recovery: Recovery) -> int:
        found = recover(recovery)
        unfinished.append(len(recovery.journal.unfinished()))
        return found

    monkeypatch.setattr(Recovery, "run", _recovered)
    original = dead.names[1].stat().st_ino
    sys = Meddler().sys(after={("exchange", 1): lambda: replaced.append(True)})

    def _sleep(_seconds: float) -> None:
        if replaced and not users.used:
            users.come(dead.aside[-1])
            (dead.root / "c").unlink()

    run(area / "job.db", sys, JobClocks(sleep=_sleep), users=users)
    assert contents(dead.root) == dict.fromkeys("ab", BASE)
    assert {name.stat().st_ino for name in dead.names} == {original}
    assert unfinished[0] == 0


def test_all_names_that_follow_are_waited_for_once(area: Path) -> None:
    root = area / "tree"
    root.mkdir()
    for number in range(20):
        (root / f"a{number}").write_bytes(BASE)
        (root / f"b{number}").hardlink_to(root / f"a{number}")
    create(root, area / "job.db")
    sys, slept = FaultySys(), list[float]()
    sys.after = lambda _, name, __: (
        sys.die() if name == "exchange" and sys.calls.count("exchange") == 40 else None
    )
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job.db", sys, ALONE)
    with closing(Journal.open(area / "job.db")) as journal:
        rows = journal.unfinished()
    fd = os.open(root, os.O_RDONLY)
    for row in rows:
        if row.name.startswith(b"a"):
            os.unlink(row.temp or b"", dir_fd=fd)
        else:
            Sys().exchange(fd, row.temp or b"", row.name)
    os.close(fd)
    _, summary = run(area / "job.db", clocks=JobClocks(sleep=slept.append), users=Nobody())
    assert summary["files_moved"] == 40
    assert all(one_file([root / f"a{number}", root / f"b{number}"]) for number in range(20))
    assert len([each for each in slept if each >= GRACE]) == 2
