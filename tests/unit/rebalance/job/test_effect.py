"""A job is judged by its effect on the vdevs, and logs one line per day."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.rebalance.job.counted import accounts_of, job_of, terms_with, watch_of
from tests.unit.rebalance.job.test_holds import Clock
from zconsole.pool.allocator import Space
from zconsole.rebalance.backend import REPLACED
from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.item import FileOutcome, StopJobError
from zconsole.rebalance.engine.journal import FileRow, Journal
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.job.accounts import ENOUGH, INTERVAL, STRIKES, SpreadWatch
from zconsole.rebalance.job.effect import AGAIN, FILES, SMALLEST, STAYED, BenefitCheck, Samples
from zconsole.rebalance.planning.facts import Dataset, FactsReader
from zconsole.rebalance.planning.settings import Settings
from zconsole.system.process import Completed

TIB = 1 << 40
ROW = FileRow(1, 1, b"f", 7, 8 * ENOUGH, 1)


@dataclass
class Sampled(Samples):
    """Samples of one directory, with their verdict set by hand."""

    verdict: bool = False

    def stayed(self) -> bool:
        return self.verdict


@dataclass
class Case:
    """A job on a pool with a full and an empty vdev, checked whenever possible."""

    journal: Journal
    aim: str = "balance"
    clock: Clock = field(default_factory=Clock)
    spaces: list[Space] = field(
        default_factory=lambda: [Space("a", TIB, TIB * 0.9), Space("b", TIB, 0.0)]
    )

    def __post_init__(self) -> None:
        day = datetime(2026, 11, 22, tzinfo=UTC)
        clocks = JobClocks(self.clock, self.clock, local=lambda: day)
        self.journal.add_directory(DirectoryRow(1, None, b"/", 0, 0))
        self.accounts = accounts_of(self.journal, self.clock, clocks)
        spaces, reader = tuple(self.spaces), FactsReader(self.zpool)
        self.accounts.watch = watch_of(reader, terms_with(spaces=spaces), self.clock)
        job = job_of(self.journal, clocks, settings=Settings((), aim=self.aim))
        self.judge = BenefitCheck(job, self.accounts)
        self.judge.begin([ROW])
        self.accounts.current = ROW

    def zpool(self, argv: Sequence[str], deadline: float) -> Completed:
        rows = [f"\t{s.name}\t{s.size}\t{s.alloc:.0f}\t{s.size - s.alloc:.0f}" for s in self.spaces]
        return Completed(
            tuple(argv), 0, "\n".join(["tank\t0\t0\t0\t-\t-\t7\t50\t1.00\tONLINE\t-", *rows]), ""
        )

    def look(self) -> None:
        self.clock.now += INTERVAL
        self.judge.chunk()

    def report(self, *outcomes: FileOutcome) -> None:
        """Report results of files as the runner does."""
        self.judge.finished(outcomes)
        self.accounts.report(outcomes, "copy")

    def moved_after(self, looks: int) -> int:
        """Return the bytes moved in the log line of the day, after ``looks`` checks."""
        for _ in range(looks):
            self.look()
            self.judge.portion()
        (day,) = self.journal.days()
        moved: int = day["moved_bytes"]
        return moved


@pytest.mark.parametrize(
    ("stored", "unfinished", "vain"),
    [(8 * ENOUGH, 0, True), (ENOUGH // 50, 0, False), (8 * ENOUGH, 1, True), (0, 1, False)],
)
def test_holes_are_not_expected_to_move(
    journal: Journal, stored: int, unfinished: int, vain: bool
) -> None:
    status = SimpleNamespace(st_size=8 * ENOUGH, st_blocks=stored // 512)
    case = Case(journal)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "lstat", lambda _: status)
        if unfinished:
            case.accounts.unfinished = 8 * ENOUGH
        else:
            case.report(FileOutcome(ROW, "moved", 8 * ENOUGH))
        with pytest.raises(StopJobError) if vain else nullcontext():
            for _ in range(2 * STRIKES):
                case.look()


@pytest.mark.parametrize(
    ("aim", "moves", "left_alone", "moved"),
    [
        ("balance", True, False, 8 * ENOUGH),
        ("properties", False, False, 8 * ENOUGH),  # not judged by where the data lies
        ("balance", False, True, 0),  # copied, and then left alone
    ],
)
def test_a_job_goes_on_that_moves_something_or_has_another_aim(
    journal: Journal, aim: str, moves: bool, left_alone: bool, moved: int
) -> None:
    case = Case(journal, aim)
    case.accounts.unfinished = 8 * ENOUGH
    if moves:
        end = Space("a", TIB, TIB * 0.9 - 8 * ENOUGH), Space("b", TIB, 8.0 * ENOUGH)
        case.spaces[:] = end
    if left_alone:
        case.report(FileOutcome(ROW, "skipped", 0, "changed"))
    assert case.moved_after(2 * STRIKES) == moved


def test_one_directory_whose_blocks_stay_is_enough(journal: Journal) -> None:
    case = Case(journal)
    other = FactsReader(case.zpool)
    for verdict in (False, True):
        case.judge.samples.append(
            Sampled(other, b"/", Dataset("tank", {}), None, case.clock, verdict=verdict)
        )  # type: ignore[arg-type]
    with pytest.raises(StopJobError, match=STAYED):
        case.judge.portion()


def test_the_line_of_a_day_counts_what_moved_and_files_that_need_no_move_apart(
    journal: Journal,
) -> None:
    case = Case(journal)
    left = [FileOutcome(ROW, "skipped", 0, why) for why in ("changed", REPLACED)]
    case.report(FileOutcome(ROW, "moved", 50), *left)
    case.judge.portion()
    (day,) = journal.days()
    assert (day["day"], day["moved_bytes"], day["files_done"]) == ("2026-11-22", 50, 3)
    assert (day["files_skipped"], day["files_replaced"]) == (2, 1)
    assert (day["fragmentation"], round(day["spread"], 3)) == (0.07, 0.9)


def test_without_a_pool_there_are_days_too(journal: Journal) -> None:
    case = Case(journal)
    case.accounts.watch = SpreadWatch(case.accounts.job)
    case.accounts.watch.now_spaces, case.accounts.watch.fragmentation = (), None
    case.judge.portion()
    (day,) = journal.days()
    assert (day["spread"], day["free_bytes"]) == (None, None)


OBJECT = """\
    Object  lvl   iblk   dblk  dsize  dnsize  lsize   %full  type
{inode:10}    2   128K   128K   256K     512   256K  100.00  ZFS plain file
Indirect blocks:
               0  L0 {vdev}:{inode:x}000:20000 20000L/20000P F=1 B=23/23 cksum=1
"""


class Guest:
    """Files of one directory, and a zdb that knows the vdev of each."""

    def __init__(self, area: Path, files: int) -> None:
        self.area = area
        self.calls: list[Sequence[str]] = []
        self.rows = []
        for number in range(files):
            (area / f"f{number}").touch()
            ino = (area / f"f{number}").stat().st_ino
            self.rows.append(FileRow(number, 1, b"f%d" % number, ino, SMALLEST, 1))
        self.vdev = {row.ino: 0 for row in self.rows}
        where = os.fsencode(area), Dataset("tank/a", {})
        self.clock = Clock()
        self.samples = Samples(FactsReader(self.run), *where, self.path, self.clock)

    def path(self, row: FileRow) -> str:
        return f"{self.area}/{os.fsdecode(row.name)}"

    def run(self, argv: Sequence[str], deadline: float) -> Completed:
        self.calls.append(argv)
        inodes = map(int, argv[3:]) if argv[0] == "zdb" else ()
        said = [OBJECT.format(inode=i, vdev=self.vdev[i]) for i in inodes if i in self.vdev]
        return Completed(tuple(argv), 0, "\n".join(said), "")

    def batch(self, *outcomes: str, moves: bool = False) -> bool:
        """Return whether all blocks stay in a batch, in which those of one file may move."""
        self.samples.note(self.rows)
        if moves:
            self.vdev[self.rows[1].ino] = 1
        pairs = zip(self.rows, outcomes or ["moved"] * 3, strict=True)
        self.samples.finished([FileOutcome(row, outcome) for row, outcome in pairs])
        return self.samples.stayed()


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guest:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return Guest(tmp_path, 3)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every path give no answer, to this module alone: pathlib and pytest ask, too."""
    ended = threading.Event()
    silent = SimpleNamespace(**{**vars(os), "lstat": lambda _path: ended.wait(60)})
    monkeypatch.setattr("zconsole.rebalance.job.effect.os", silent)
    yield
    ended.set()


@pytest.mark.usefixtures("hanging")
def test_samples_at_a_path_that_gives_no_answer_say_nothing(guest: Guest) -> None:
    assert not guest.batch()


@pytest.mark.usefixtures("hanging")
def test_a_path_that_gives_no_answer_ends_no_job(journal: Journal) -> None:
    case = Case(journal)
    case.report(FileOutcome(ROW, "moved", 8 * ENOUGH))
    for _ in range(2 * STRIKES):
        case.look()


@pytest.mark.parametrize(
    ("outcomes", "moves", "stayed"),
    [
        ("moved moved moved", False, True),
        ("moved moved moved", True, False),  # one block that moved is enough
        # Three large files in use must not end a job that moves all the others.
        ("skipped skipped failed", False, False),
        ("skipped moved failed", False, True),
    ],
)
def test_blocks_that_stay_are_seen(guest: Guest, outcomes: str, moves: bool, stayed: bool) -> None:
    assert guest.batch(*outcomes.split(), moves=moves) is stayed


def test_zdb_is_asked_once_before_and_once_after(guest: Guest) -> None:
    guest.batch()
    assert [argv[0] for argv in guest.calls] == ["zdb", "zpool", "zdb"]
    assert len(guest.calls[0]) == 3 + FILES
    guest.batch()
    assert len(guest.calls) == 3


def test_blocks_that_stay_later_on_are_seen(guest: Guest) -> None:
    """Setting the checksum to sha256 during a job keeps blocks where they are from then on."""
    assert not guest.batch(moves=True)
    assert not guest.batch()
    guest.clock.now += AGAIN
    assert guest.batch()


def test_a_silent_zdb_is_not_asked_for_ever(guest: Guest) -> None:
    guest.vdev.clear()
    for _ in range(10):
        assert not guest.batch()
    assert len(guest.calls) == 3


def test_others_than_root_ask_nothing(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not guest.batch()
    assert guest.calls == []
