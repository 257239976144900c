"""Others who replace, remove or move a name between two calls on it lose nothing."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import ALONE, FaultySys, create, run
from tests.faults.test_changes import TICK, Late
from tests.faults.test_meddlers import BASE, Meddler, contents, save, tree_of
from tests.faults.test_no_exchange import NoExchange
from zconsole.rebalance.engine.file_locks import FilesInUse
from zconsole.rebalance.engine.swap import ROUNDS

THEIRS = b"theirs\n"
BUSY = "the name keeps being replaced"
COPIED, REPLACED = 2, 3
"""Numbers of looks for users: after all files are copied, and after names are replaced."""


class Acting(Late):
    """Somebody acts at a look for users, which finds that files are in use."""

    def __init__(self, look: int, act: Callable[[], object], *used: Path) -> None:
        super().__init__(*used)
        self.looks = REPLACED - look
        self.act = act

    def look(self, *words: object, **more: object) -> FilesInUse:
        found = super().look(*words, **more)
        if self.looks == REPLACED:
            self.act()
        return found


@pytest.fixture
def root(area: Path) -> Path:
    """A tree of one file, and a directory outside the job."""
    (area / "beside").mkdir()
    return tree_of(area, "a")


def moved(
    area: Path, sys: FaultySys | None = None, users: Late | None = None
) -> list[tuple[str, str]]:
    """Return outcome and reason of every file of a job."""
    create(area / "tree", area / "job.db", accept_races=True)
    shown, _ = run(area / "job.db", sys, ALONE, users=users)
    return [(line["outcome"], line["reason"] or "") for line in shown]


def other_of(found: list[tuple[str, str]]) -> str:
    """Return the name of the other version."""
    return found[0][1].rpartition(" ")[2]


def hidden(root: Path) -> Path:
    """Return the job's only temporary name."""
    (name,) = root.glob(".zc-*")
    return name


def each_exchange_back(act: Callable[[int], object]) -> dict[tuple[str, int], Callable[[], Any]]:
    """Return acts of others before every exchange except the first."""
    return {("exchange", number): partial(act, number) for number in range(2, 3 * ROUNDS)}


def test_the_original_goes_where_the_copy_was_removed(area: Path, root: Path) -> None:
    found = moved(area, users=Acting(REPLACED, (root / "a").unlink, root / "a"))
    assert found[0][0] == "skipped"
    assert contents(root) == {}


def test_both_stay_where_the_copy_was_moved_elsewhere(area: Path, root: Path) -> None:
    away = area / "beside" / "away"
    found = moved(area, users=Acting(REPLACED, lambda: (root / "a").rename(away), root / "a"))
    assert found[0][0] == "failed"
    assert "renamed during the move" in found[0][1]
    assert contents(root) == {other_of(found): BASE}
    assert away.read_bytes() == BASE


def test_a_file_saved_just_before_the_exchange_back_stays(area: Path, root: Path) -> None:
    sys = Meddler().sys(before={("exchange", 2): lambda: save(root, "a", THEIRS)})
    found = moved(area, sys, Late(root / "a"))
    assert found[0][0] == "skipped"
    assert contents(root) == {"a": THEIRS}


def test_a_file_saved_is_kept_where_the_copy_put_over_it_was_removed(
    area: Path, root: Path
) -> None:
    """The saved file is then under the temporary name, and must not be removed with the copy."""
    acts = {
        ("exchange", 1): lambda: save(root, "a", THEIRS),
        ("exchange", 2): (root / "a").unlink,
    }
    found = moved(area, Meddler().sys(before=acts))
    assert found[0][0] == "failed"
    assert contents(root) == {other_of(found): THEIRS}


def test_names_of_ours_that_others_have_exchanged_back_are_let_go(area: Path, root: Path) -> None:
    inode = (root / "a").stat().st_ino

    def _exchange() -> None:
        folder = os.open(root, os.O_RDONLY)
        FaultySys().exchange(folder, os.fsencode(hidden(root).name), b"a")
        os.close(folder)

    found = moved(area, users=Acting(REPLACED, _exchange, root / "a"))
    assert found[0][0] == "skipped"
    assert contents(root) == {"a": BASE}
    assert (root / "a").stat().st_ino == inode


def test_a_name_that_is_always_replaced_is_left_to_recovery(area: Path, root: Path) -> None:
    acts = each_exchange_back(lambda number: save(root, "a", b"%d" % number))
    found = moved(area, Meddler().sys(before=acts), Late(root / "a"))
    assert [(outcome, reason.endswith(BUSY)) for outcome, reason in found] == [("failed", True)]
    assert len(set(root.glob(".zc-*"))) == 1


def test_a_copy_that_is_always_renamed_is_left_to_recovery(area: Path, root: Path) -> None:
    def _rename(number: int) -> None:
        (name,) = (path for path in root.iterdir() if not path.name.startswith(".zc-"))
        name.rename(root / f"a{number}")

    sys = Meddler().sys(before=each_exchange_back(_rename))
    found = moved(area, sys, Late(root / "a"))
    assert [(outcome, reason.endswith(BUSY)) for outcome, reason in found] == [("failed", True)]
    assert [*contents(root).values()] == [BASE]


def test_a_file_saved_just_before_its_second_link_stays(area: Path, root: Path) -> None:
    """If names cannot be exchanged, the link is made to whatever has the name by then."""
    acted: list[int] = []

    def _fault(_number: int, name: str) -> None:
        if name == "link" and not acted:
            acted.append(1)
            save(root, "a", THEIRS)

    found = moved(area, NoExchange(_fault))
    assert found == [("skipped", "changed")]
    assert contents(root) == {"a": THEIRS}


def test_a_file_put_at_a_temporary_name_is_not_put_in_place(area: Path, root: Path) -> None:
    names: list[Path] = []

    def _put() -> None:
        names.append(hidden(root))
        save(root, names[0].name, THEIRS)

    found = moved(area, users=Acting(COPIED, _put))
    assert found == [("skipped", "changed")]
    assert contents(root) == {"a": BASE, names[0].name: THEIRS}


def test_a_copy_being_opened_before_it_is_seen_is_kept(area: Path, root: Path) -> None:
    """Somebody opens it by its temporary name to write, as the original turns out to be in use."""

    def _open() -> None:
        with contextlib.suppress(BlockingIOError):
            os.open(hidden(root), os.O_WRONLY | os.O_NONBLOCK)

    found = moved(area, users=Acting(COPIED, _open, root / "a"))
    assert found[0][0] == "failed"
    assert contents(root) == {"a": BASE, other_of(found): BASE}


def test_a_name_given_to_another_file_stays_with_it(area: Path, root: Path) -> None:
    """The original has another name, and is otherwise unchanged."""

    def _rotate() -> None:
        (root / "a").rename(root / "b")
        (root / "a").write_bytes(THEIRS)

    found = moved(area, Meddler().sys(before={("exchange", 1): _rotate}))
    assert found == [("skipped", "changed")]
    assert contents(root) == {"a": THEIRS, "b": BASE}


class NoLeases(FaultySys):
    """System calls of a filesystem without leases."""

    def lease(self, fd: int, kind: int) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def test_a_write_that_only_the_change_time_tells_of_is_kept(area: Path, root: Path) -> None:
    def _write() -> None:
        status = (root / "a").stat()
        time.sleep(TICK)
        (root / "a").write_bytes(THEIRS[: len(BASE)].ljust(len(BASE)))
        os.utime(root / "a", ns=(status.st_atime_ns, status.st_mtime_ns))

    found = moved(area, NoLeases(), Acting(COPIED, _write))
    assert found == [("skipped", "changed")]
    assert contents(root) == {"a": THEIRS[: len(BASE)].ljust(len(BASE))}


def test_a_file_put_in_the_place_of_an_unfinished_copy_stays(area: Path, root: Path) -> None:
    names: list[Path] = []

    def _put() -> None:
        names.append(hidden(root))
        save(root, names[0].name, THEIRS)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    found = moved(area, Meddler().sys(before={("pwrite", 1): _put}))
    assert found[0][0] == "failed"
    assert contents(root) == {"a": BASE, names[0].name: THEIRS}
