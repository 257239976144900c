"""Changes by others between two calls of recovery are kept, and reported if they must be."""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from tests.faults.harness import ALONE, FaultySys, Nobody, create, run
from tests.faults.test_changes import TICK, killed_after
from tests.faults.test_meddlers import BASE, Meddler, contents, save, tree_of
from tests.faults.test_no_exchange import NoExchange
from tests.faults.test_taken_back import reasons
from zconsole.rebalance.engine.directories import Directories
from zconsole.rebalance.engine.file_locks import FilesInUse
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.recovery import Recovery
from zconsole.rebalance.engine.workplace import JobClocks


class Coming(Nobody):
    """Somebody begins to use a file; a recent look is not repeated."""

    def __init__(self) -> None:
        super().__init__()
        self.used: dict[tuple[int, int], str] = {}

    def recent(self) -> FilesInUse:
        return self.last or self.look()

    def look(self, *_: object, **__: object) -> FilesInUse:
        self.last = replace(super().look(), mounted=dict(self.used))
        return self.last

    def come(self, path: Path) -> None:
        """Start to use a file."""
        status = path.stat()
        self.used[status.st_dev, status.st_ino] = ""


def test_who_comes_as_a_file_is_given_back_keeps_its_copy(area: Path) -> None:
    """The user comes just before the copy is removed, which is kept for such users."""
    root, users = tree_of(area, "a"), Coming()
    create(root, area / "job.db")
    with (root / "a").open("rb") as original:
        killed_after(area / "job.db", "exchange", FaultySys())
        time.sleep(TICK)
        os.fchmod(original.fileno(), 0o640)
    copy = (root / "a").stat().st_ino

    def _sleep(_seconds: float) -> None:
        for path in root.glob(".zc-*"):
            if path.stat().st_ino == copy:
                users.come(path)

    run(area / "job.db", clocks=JobClocks(sleep=_sleep), users=users)
    (kept,) = root.glob(".zc-*")
    assert kept.stat().st_ino == copy
    assert kept.name in reasons(area / "job.db")


def test_two_files_saved_around_an_exchange_are_both_kept(area: Path) -> None:
    """One is saved right before the exchange, one right before recovery undoes it."""
    root = tree_of(area, "a")
    create(root, area / "job.db")
    before = {("exchange", 1): lambda: save(root, "a", b"saved\n")}
    killed_after(area / "job.db", "exchange", Meddler().sys(before))
    again = {("exchange", 1): lambda: save(root, "a", b"again\n")}
    run(area / "job.db", Meddler().sys(again), ALONE)
    (kept,) = root.glob(".zc-*")
    assert contents(root) == {"a": b"again\n", kept.name: b"saved\n"}
    assert reasons(area / "job.db").endswith(f"the other version is {kept.name}")


def test_one_recovery_settles_a_file_saved_as_its_name_is_given_back(area: Path) -> None:
    root = tree_of(area, "a")
    create(root, area / "job.db")
    before = {("exchange", 1): lambda: save(root, "a", b"saved\n")}
    killed_after(area / "job.db", "exchange", Meddler().sys(before))
    sys = Meddler().sys({("exchange", 1): lambda: save(root, "a", b"again\n")})
    with closing(Journal.open(area / "job.db")) as journal:
        directories = Directories(sys, journal.directory)
        Recovery(
            sys, journal, directories, lambda _count: None, now=time.time, booted=lambda: 0.0,
            sync=lambda: None, sleep=lambda _seconds: None, users=Nobody(),
        ).run()  # fmt: skip
        assert journal.unfinished() == []


def test_no_second_link_of_an_original_is_left_under_a_file_saved_since(area: Path) -> None:
    """Killed between the original's second link and the rename that follows it."""
    root = tree_of(area, "a")
    create(root, area / "job.db", accept_races=True)
    killed_after(area / "job.db", "link", NoExchange())
    assert {path.read_bytes() for path in root.glob(".zc-*")} == {BASE}
    save(root, "a", b"saved\n")
    run(area / "job.db", NoExchange(), ALONE)
    assert contents(root) == {"a": b"saved\n"}
