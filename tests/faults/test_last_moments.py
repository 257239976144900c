"""Changes by others while recovery looks for users, just before something is removed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.harness import ALONE, FaultySys, Nobody, create, run
from tests.faults.test_changes import TICK, killed_after, killed_between_links
from tests.faults.test_meddlers import BASE, WRITE, Meddler, contents, save, tree_of
from tests.faults.test_taken_back import reasons
from zconsole.rebalance.engine.file_locks import FilesInUse


class Busy(Nobody):
    """Somebody acts during the Nth look for users, and uses a file at the first."""

    def __init__(self, act: Callable[[], object], at: int = 1, used: Path | None = None) -> None:
        super().__init__()
        self.act, self.at, self.looks = act, at, 0
        status = used.stat() if used else None
        self.used = {(status.st_dev, status.st_ino): ""} if status else {}

    def recent(self) -> FilesInUse:
        self.looks += 1
        if self.looks == self.at:
            self.act()
        used = self.used if self.looks == 1 else {}
        self.last = replace(super().look(), mounted=used)
        return self.last


def test_an_attribute_set_while_users_are_looked_for_is_kept(area: Path) -> None:
    """It is set in the last moment before the original is removed."""
    root = tree_of(area, "a")
    create(root, area / "job.db")
    with (root / "a").open("rb") as original:
        killed_after(area / "job.db", "exchange", FaultySys())
        run(
            area / "job.db",
            clocks=ALONE,
            users=Busy(lambda: os.setxattr(original.fileno(), "user.k", b"v")),
        )
    assert [os.listxattr(path) for path in root.iterdir()] == [["user.k"]]


def test_an_attribute_set_on_the_original_of_a_replaced_copy_is_kept(area: Path) -> None:
    """The change comes during the look for users, just before the original is removed."""
    root = tree_of(area, "a")
    create(root, area / "job.db")
    with (root / "a").open("rb") as original:
        killed_after(area / "job.db", "exchange", FaultySys())
        save(root, "a", b"saved\n")
        change = Busy(lambda: os.setxattr(original.fileno(), "user.k", b"v"))
        run(area / "job.db", clocks=ALONE, users=change)
    assert [os.listxattr(path) for path in root.glob(".zc-*")] == [["user.k"]]


def test_an_original_in_use_is_kept_where_its_copy_was_replaced(area: Path) -> None:
    root = tree_of(area, "a")
    create(root, area / "job.db")
    killed_after(area / "job.db", "exchange", FaultySys())
    save(root, "a", b"saved\n")
    aside = next(root.glob(".zc-*"))
    run(area / "job.db", clocks=ALONE, users=Busy(lambda: None, used=aside))
    assert aside.read_bytes() == BASE
    assert aside.name in reasons(area / "job.db")


class Came(Nobody):
    """Somebody uses a file by the time of the second look for users."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.last = super().look()
        status = path.stat()
        self.used = {(status.st_dev, status.st_ino): ""}

    def recent(self) -> FilesInUse:
        return self.last

    def look(self, *_: object, **__: object) -> FilesInUse:
        self.last = replace(self.last, mounted=self.used)
        return self.last


@pytest.mark.parametrize("users", [Came, lambda copy: Busy(lambda: None, used=copy)])
def test_a_copy_in_use_is_kept_where_the_original_was_changed(
    area: Path, users: Callable[[Path], Nobody]
) -> None:
    root = tree_of(area, "a")
    create(root, area / "job.db")
    killed_after(area / "job.db", "exchange", FaultySys())
    copy = (root / "a").stat().st_ino
    next(root.glob(".zc-*")).chmod(0o640)
    run(area / "job.db", clocks=ALONE, users=users(root / "a"))
    modes = {path.stat().st_ino: path.stat().st_mode & 0o777 for path in root.iterdir()}
    assert copy in modes
    assert 0o640 in modes.values()


def test_a_writer_that_comes_while_users_are_looked_for_loses_nothing(area: Path) -> None:
    root = tree_of(area, "a")
    create(root, area / "job.db")
    killed_after(area / "job.db", "exchange", FaultySys())
    aside, meddler = next(root.glob(".zc-*")), Meddler()
    run(area / "job.db", clocks=ALONE, users=Busy(lambda: meddler.open(aside)))
    meddler.write()
    assert BASE + WRITE in contents(root).values()


def test_links_stay_one_file_where_the_original_is_opened_late(area: Path) -> None:
    """It is opened for writing as one name is settled, and closed unchanged by the next."""
    root = killed_between_links(area, 2)
    aside = next(root.glob(".zc-*"))
    writer = threading.Thread(target=lambda: os.close(os.open(aside, os.O_WRONLY)))

    def begin() -> None:
        writer.start()
        time.sleep(TICK)

    next_opened = FaultySys(
        lambda _, name: writer.join() if name == "open" and writer.ident else None
    )
    _, summary = run(area / "job.db", next_opened, ALONE, users=Busy(begin))
    assert writer.ident
    assert contents(root) == {"a": BASE, "b": BASE}
    assert (root / "a").samefile(root / "b")
    assert summary["files_moved"] == 2


def test_a_name_given_back_follows_no_copy_changed_later(area: Path) -> None:
    """The original is used as one name is settled, and the copy is changed at the next."""
    root = killed_between_links(area, 2)
    aside = next(root.glob(".zc-*"))

    def change() -> None:
        copied = next(root / name for name in "ab" if not aside.samefile(root / name))
        copied.chmod(0o640)

    run(area / "job.db", clocks=ALONE, users=Busy(change, 3, aside))
    assert 0o640 in {path.stat().st_mode & 0o777 for path in root.glob("[ab]")}
    left = [path.name for path in root.glob(".zc-*")]
    assert not [name for name in left if name not in reasons(area / "job.db")]
