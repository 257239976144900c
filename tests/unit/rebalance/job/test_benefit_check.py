"""A job is judged by what it does to the vdevs, and tells a line a day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.unit.rebalance.job.test_pacer import Clock
from zconsole.pool.allocator import Space
from zconsole.rebalance.engine.item import FileOutcome, StopJobError
from zconsole.rebalance.engine.journal import FileRow, Journal
from zconsole.rebalance.job import benefit_check
from zconsole.rebalance.job.accounts import RunProgress
from zconsole.rebalance.job.benefit_check import BenefitCheck
from zconsole.rebalance.job.block_samples import Samples
from zconsole.rebalance.job.move_effect import ENOUGH, INTERVAL, STRIKES, MoveEffect
from zconsole.rebalance.planning.facts import FactsReader
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
    """A job on a pool of a full vdev and an empty one, looked at whenever it may be."""

    journal: Journal
    aim: str = "balance"
    clock: Clock = field(default_factory=Clock)
    spaces: list[Space] = field(
        default_factory=lambda: [Space("a", TIB, TIB * 0.9), Space("b", TIB, 0.0)]
    )

    def __post_init__(self) -> None:
        self.progress = RunProgress(self.journal, self.clock, self.clock, 1)
        watching = MoveEffect(FactsReader(self.zpool), "tank", tuple(self.spaces), 1.0, self.clock)
        self.samples: list[Sampled] = []
        self.judge = BenefitCheck(
            self.journal, self.progress, self.samples, watching, self.aim == "balance",
            self.clock, lambda: datetime(2026, 11, 22, tzinfo=UTC),
        )  # fmt: skip
        self.judge.begin([ROW])

    def zpool(self, argv: Sequence[str], deadline: float) -> Completed:
        rows = [f"\t{s.name}\t{s.size}\t{s.alloc:.0f}\t{s.size - s.alloc:.0f}" for s in self.spaces]
        return Completed(
            tuple(argv), 0, "\n".join(["tank\t0\t0\t0\t-\t-\t7\t50\t1.00\tONLINE\t-", *rows]), ""
        )

    def look(self) -> None:
        self.clock.now += INTERVAL
        self.judge.chunk()

    def moved_after(self, looks: int) -> int:
        """What the line of the day says has moved, once so many looks let the job go on."""
        for _ in range(looks):
            self.look()
            self.judge.portion()
        (day,) = self.journal.days()
        moved: int = day["moved_bytes"]
        return moved


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with closing(Journal.create(tmp_path / "job.db")) as journal:
        yield journal


def test_a_file_that_takes_days_is_judged_on_the_way(journal: Journal) -> None:
    case = Case(journal)
    case.progress.unfinished = 8 * ENOUGH
    for _ in range(STRIKES - 1):
        case.look()
    with pytest.raises(StopJobError, match="every vdev holds what it held"):
        case.look()


def test_a_file_that_moves_is_not(journal: Journal) -> None:
    case = Case(journal)
    case.progress.unfinished = 8 * ENOUGH
    case.spaces[:] = [Space("a", TIB, TIB * 0.9 - 8 * ENOUGH), Space("b", TIB, 8.0 * ENOUGH)]
    assert case.moved_after(2 * STRIKES) == 8 * ENOUGH


def test_new_properties_are_not_judged_by_where_the_data_lies(journal: Journal) -> None:
    case = Case(journal, "properties")
    case.progress.unfinished = 8 * ENOUGH
    assert case.moved_after(2 * STRIKES) == 8 * ENOUGH


def test_what_was_copied_and_then_left_alone_is_no_sign_of_nothing_moving(journal: Journal) -> None:
    case = Case(journal)
    case.progress.handled = 8 * ENOUGH
    case.judge.finished([FileOutcome(ROW, "skipped", 0, "changed")])
    assert case.moved_after(2 * STRIKES) == 0


def test_one_directory_whose_blocks_stay_is_enough(journal: Journal) -> None:
    case = Case(journal)
    other = FactsReader(case.zpool)
    for verdict in (False, True):
        case.samples.append(Sampled(other, None, None, case.clock, verdict=verdict))  # type: ignore[arg-type]
    with pytest.raises(StopJobError, match=benefit_check.STAYED):
        case.judge.portion()


def test_the_line_of_a_day_counts_what_moved(journal: Journal) -> None:
    case = Case(journal)
    case.judge.finished([FileOutcome(ROW, "moved", 50), FileOutcome(ROW, "skipped", 0, "changed")])
    case.progress.files_done, case.progress.files_skipped = 2, 1
    case.judge.portion()
    (day,) = journal.days()
    told = {key: day[key] for key in ("day", "moved_bytes", "files_done", "files_skipped")}
    assert told == {"day": "2026-11-22", "moved_bytes": 50, "files_done": 2, "files_skipped": 1}
    assert (day["fragmentation"], round(day["spread"], 3)) == (0.07, 0.9)


def test_without_a_pool_there_are_days_too(journal: Journal) -> None:
    case = Case(journal)
    case.judge.watching = None
    case.judge.portion()
    (day,) = journal.days()
    assert (day["spread"], day["free_bytes"]) == (None, None)
