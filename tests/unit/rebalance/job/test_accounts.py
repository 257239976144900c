from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.table import rows
from tests.unit.rebalance.job.counted import accounts_of, job_of, terms_with, watch_of
from tests.unit.rebalance.job.test_holds import Clock
from zconsole.errors import UnavailableError
from zconsole.pool.allocator import Space
from zconsole.rebalance.backend import REPLACED, EndedFile, JobStatus
from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.item import FileOutcome, StopJobError
from zconsole.rebalance.engine.journal import FileRow, Journal
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.job import accounts, creation
from zconsole.rebalance.job.accounts import (
    AGAIN,
    ENOUGH,
    FILES,
    INTERVAL,
    SMALLEST,
    STRIKES,
    BenefitCheck,
    JobAccounts,
    Samples,
    SpreadWatch,
)
from zconsole.rebalance.job.job import PUBLISH, terms_of
from zconsole.rebalance.job.job_store import Record
from zconsole.rebalance.planning import forecast, plan
from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import Dataset, FactsReader, JobDirectory, PoolFacts
from zconsole.rebalance.planning.forecast import DirectoryPlan
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.rebalance.planning.survey import Ages, Survey
from zconsole.system.process import Completed

BEFORE = (Space("d0", 100.0, 80.0, 1.0), Space("d1", 100.0, 0.0, 1.0))
AFTER = (Space("d0", 100.0, 40.0, 1.0), Space("d1", 100.0, 40.0, 1.0))
HELD = (BEFORE[0], AFTER[1])
"""Files are copied, and the freed space is not visible yet."""


@dataclass
class Pool:
    """A pool whose freed space becomes visible after three syncs."""

    syncs: int = 0
    hangs: bool = False
    asked: list[str] = field(default_factory=list)

    def sync(self, pool: str) -> None:
        if self.hangs:
            raise UnavailableError("zpool gave no answer")
        self.syncs += 1

    def listing(self, pool: str) -> tuple[tuple[Space, ...], float]:
        return AFTER if self.syncs >= 3 else HELD, 0.1


def effect(pool: Any) -> SpreadWatch:
    return watch_of(pool, terms_with(spaces=BEFORE))


@rows(("hangs", "wait", "shown"), [(False, True, AFTER), (False, False, HELD), (True, True, HELD)])
def test_the_last_look_waits_for_what_was_freed(
    journal: Journal, hangs: bool, wait: bool, shown: Any
) -> None:
    accounts = accounts_of(journal, lambda: 0.0)
    accounts.watch = effect(Pool(hangs=hangs))
    accounts.watch.read()
    accounts.end("done" if wait else "stop")
    assert accounts.watch.now_spaces == shown


def test_a_target_is_judged_by_what_was_freed_too() -> None:
    assert effect(Pool()).reached(0.1, 10)
    assert not effect(Pool(hangs=True)).reached(0.1, 10)


@rows(
    ("limits", "ended", "unfinished", "left"),
    [
        (Limits(), {"moved": 400}, 0, 600),
        (Limits(max_bytes=500), {"moved": 400}, 0, 100),
        (Limits(max_bytes=500), {"moved": 400}, 60, 40),
        (Limits(), {"moved": 1100}, 0, 0),  # a file grew
        # The byte limit spares what was skipped or failed.
        (Limits(max_bytes=400), {"moved": 300, "skipped": 300, "failed": 100}, 0, 100),
    ],
)
def test_what_is_left_is_that_of_files_that_are_not_finished(
    journal: Journal, limits: Limits, ended: dict[str, int], unfinished: int, left: int
) -> None:
    accounts = accounts_of(journal, lambda: 0.0)
    accounts.job.limits, accounts.bytes_total = limits, 1000
    accounts.ended_bytes.update(ended)
    accounts.unfinished = unfinished
    assert accounts.left() == left


def test_what_is_to_do_ends_at_the_wanted_spread_or_the_byte_limit(journal: Journal) -> None:
    accounts = accounts_of(journal, lambda: 0.0)
    accounts.bytes_total = 1000
    accounts.watch = effect(Pool(hangs=False))
    accounts.watch.job.reader.syncs = -9  # type: ignore[attr-defined]
    accounts.job.limits = Limits(until_spread=0.3)
    assert not accounts.watch.reached(0.3, 0)
    goal = accounts.status().bytes_goal
    assert 0 < goal < 1000
    accounts.work(goal - 5)
    assert accounts.status().bytes_goal == goal
    accounts.job.limits = Limits(until_spread=0.2)
    assert accounts.status().bytes_goal == 1000, "not predicted yet"
    accounts.job.limits = Limits(until_spread=0.3, max_bytes=goal - 2)
    assert accounts.status().bytes_goal == goal - 2
    accounts.state = "finished"
    assert accounts.status().bytes_goal == goal - 5


GIB = 1 << 30


@dataclass
class Filling:
    """A pool of two vdevs, one of which is empty."""

    fill: float
    """GiB that the other vdev holds, of a hundred."""

    def sync(self, pool: str) -> None:
        """Do nothing: there is nothing to wait for."""

    def listing(self, pool: str) -> tuple[tuple[Space, ...], float]:
        full, empty = (
            Space(n, 100.0 * GIB, f * GIB, 1.0) for n, f in (("d0", self.fill), ("d1", 0.0))
        )
        return (full, empty), 0.1


def totals(tmp_path: Path, fills: list[float]) -> list[tuple[int, list[str]]]:
    """Return the total and the notes in the status: at once, and after each look, 1 GiB apart."""
    with closing(Journal.create(tmp_path / "j")) as journal:
        accounts = accounts_of(journal, lambda: 0.0)
        accounts.bytes_total = 500 * GIB
        accounts.job.limits = Limits(until_spread=0.3)
        pool: Any = Filling(80.0)
        planned, _ = pool.listing("tank")
        accounts.watch = watch_of(pool, terms_with(spaces=planned))
        said = [accounts.status()]
        for fill in fills:
            pool.fill = fill
            accounts.watch.next_check = 0
            assert not accounts.watch.reached(0.3, accounts.handled)
            said.append(accounts.status())
            accounts.work(GIB)
        return [(each.bytes_goal or 0, list(each.notes)) for each in said]


def test_the_total_is_that_of_the_plan_from_the_first_moment(tmp_path: Path) -> None:
    """It was first that of all files, then that up to the spread, then another at every look."""
    found = totals(tmp_path, [80.0, 79.5, 78.0, 78.5])
    assert len({goal for goal, _ in found}) == 1
    assert found[0][0] < 500 * GIB
    assert all(notes == [] for _, notes in found)


@rows(
    ("fills", "why"),
    [
        ([99.0], "the pool changed since the plan"),
        ([80.0, 99.0], "the spread falls slower than predicted"),
        ([80.0, 60.0], "the spread falls faster than predicted"),
    ],
)
def test_a_total_that_has_to_change_says_why(tmp_path: Path, fills: list[float], why: str) -> None:
    (tmp_path / why).mkdir()
    (planned, _), *_, (total, notes) = totals(tmp_path / why, fills)
    assert total != planned
    assert len(notes) == 1
    assert notes[0].startswith("total now ")
    assert notes[0].endswith(f": {why}")


def test_the_mean_rate_is_that_of_the_work_without_the_waits(journal: Journal) -> None:
    now = 0.0
    accounts = accounts_of(journal, lambda: now)
    accounts.bytes_total = 1 << 30
    for second in range(21):
        now = float(second)
        accounts.work(1000)
        early = accounts.status().mean_rate
        assert (early is None) == (second < 10)
    left = (1 << 30) - 21 * 1000
    assert accounts.status().eta_seconds == pytest.approx(left / 1000)
    accounts.wait("paused")
    now += 5000.0
    accounts.wait(None)
    accounts.end("stop")
    accounts.emit()
    assert accounts.status().mean_rate == pytest.approx(21 * 1000 / 20.0)


def test_each_event_is_shown_and_the_newest_kept_without_what_is_only_printed(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobAccounts, "path", lambda *_: "/d/f")
    now, events = 0.0, list[JobStatus]()
    accounts = accounts_of(journal, lambda: now)
    accounts.show = events.append
    jotted = list[str]()
    journal.jot = lambda key, value: jotted.append(value["why"])  # type: ignore[method-assign]

    def kept() -> tuple[str, str | None]:
        status = journal.get("status")
        assert not {"ended_files", "summary"} & status.keys()
        return status["state"], status["why"]

    accounts.work(1)
    accounts.work(1)
    assert (len(events), kept(), jotted) == (1, ("running", None), [])
    now += PUBLISH
    accounts.work(1)
    assert (len(events), jotted) == (2, [None])
    accounts.wait("disk latency is high")
    assert kept() == ("waiting", "disk latency is high")
    row = FileRow(1, 1, b"f", 7, 10, 1)
    accounts.report([FileOutcome(row, "skipped", 0, "locked")], "copy")
    assert events[-1].ended_files == [EndedFile("/d/f", 0, "copy", "skipped", "locked")]
    assert (events[-1].files_done, len(jotted)) == (1, 1)
    accounts.sum_up("done", 1.0)
    assert [event.summary is None for event in events] == [True] * 4 + [False]


@rows(
    ("source", "stored", "data"),
    [
        (None, 1.0, 1.0),
        (None, 0.5, 0.8),
        ([1.0, 0.0], 1.0, 1.0),
        ([1.0, 0.0], 0.25, 0.5),
        ([0.5, 0.5], 2.0, 1.0),
    ],
)
def test_a_job_begins_with_the_total_of_its_plan(
    tmp_path: Path, source: list[float] | None, stored: float, data: float
) -> None:
    """Compression, vdevs and pinned blocks of the files are all included."""
    for pinned in (0, 25):
        spaces = (Space("d0", 1000 * GIB, 800 * GIB, data=data), Space("d1", 1000 * GIB, 100 * GIB))
        pool = PoolFacts("tank", {}, spaces, (2, 4, 0), used=600 * GIB)
        found = Survey(b"/tank", Ages(), 9000 * GIB, allocated=500 * GIB)
        place, length = JobDirectory(b"/tank", "zfs", "tank", None), round(500 * GIB / stored)
        held = {"snapshots": pinned * 5 * GIB}
        each = DirectoryPlan(place, found, Choice("rewrite", ""), 9, length, dict(held))
        settings = Settings(("/tank",), limits=Limits(until_spread=0.4))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(forecast, "source", lambda *_: (source, "made up"))
            made = plan.judged([each], pool, settings)
        told = creation.terms_of_plan(Record("abc123", Path("/j"), Path("/f")), settings, made)
        with closing(Journal.create(tmp_path / f"{source}{stored}{pinned}")) as journal:
            journal.set("job", asdict(told))
            kept = terms_of(journal)
        watch = watch_of(FactsReader(), kept)
        planned = made.document.bytes_to_target
        assert planned is not None
        assert watch.left(0.4, 0) == pytest.approx(planned, rel=0.05)


@rows(
    ("limits", "left"),
    [
        (Limits(), 651),  # half of the writes return to the full vdev
        (Limits(rate=1e6), 511),  # 1300 ln(1000 / 675): the share of free bytes changes
        (Limits(max_latency=0.1), 511),
    ],
)
def test_a_job_that_nothing_slows_down_expects_its_writes_to_keep_the_disks_busy(
    limits: Limits, left: int
) -> None:
    spaces = (Space("raidz1-0", 1000, 700, speed=5), Space("raidz1-1", 1000, 0, speed=5))
    settings, source = Settings((), limits=limits), [1.0, 0.0]
    watch = watch_of(FactsReader(), terms_with(spaces=spaces, settings=settings, source=source))
    assert watch.left(0.05, 0) == pytest.approx(left, rel=0.02)
    spread = Space("raidz1-0", 1000, 20, speed=5), Space("raidz1-1", 1000, 0, speed=5)
    even = watch_of(FactsReader(), terms_with(spaces=spread, settings=settings, source=source))
    assert even.left(0.05, 0) == 0


@rows(
    ("window", "hour", "hours"),
    [(None, 22, 40), ("22:00-06:00", 22, 104), ("22:00-06:00", 5, 120), ("00:00-24:00", 5, 40)],
)
def test_the_end_of_a_job_that_works_at_night_is_nights_away(
    journal: Journal, window: str | None, hour: int, hours: int
) -> None:
    now = [0.0]
    clocks = JobClocks(
        lambda: now[0], lambda: now[0], local=lambda: datetime(2026, 3, 1, hour, tzinfo=UTC)
    )
    accounts = accounts_of(journal, lambda: now[0], clocks)
    accounts.bytes_total, accounts.job.limits = 40 * 3600 + 10, Limits(window=window)
    accounts.work(0)
    now[0] += 10.0
    accounts.work(10)
    assert accounts.status().eta_seconds == pytest.approx(hours * 3600)


def test_waits_for_slow_disks_are_part_of_the_pace(journal: Journal) -> None:
    """The end was that of a job that nothing slows down, and unknown at every second look."""
    now = 0.0
    accounts = accounts_of(journal, lambda: now)
    accounts.bytes_total = 1 << 30
    ends = list[float | None]()
    accounts.work(0)
    for _ in range(20):
        now += 2.0
        accounts.work(2000)
        accounts.wait("disk latency is high")
        ends.append(accounts.status().eta_seconds)
        now += 2.0
        accounts.wait(None)
        ends.append(accounts.status().eta_seconds)
    left = (1 << 30) - 40_000
    assert ends[-1] == pytest.approx(left / 500)
    assert None not in ends[1:]
    assert ends[-2] == pytest.approx(left / 550, rel=0.11)
    assert accounts.status().mean_rate == pytest.approx(1000)


@rows("waits", [False, True])
def test_a_job_that_waits_for_its_hours_has_an_end(journal: Journal, waits: bool) -> None:
    """By day its end was unknown; then it was that of a job whose disks are never busy."""
    now, hour = 0.0, [22]
    clocks = JobClocks(
        lambda: now, lambda: now, local=lambda: datetime(2026, 3, 1, hour[0], tzinfo=UTC)
    )
    accounts = accounts_of(journal, lambda: now, clocks)
    accounts.bytes_total, accounts.job.limits = 10_000 + 3600, Limits(window="22:00-06:00")
    accounts.work(0)
    now += 10_000.0
    accounts.work(10_000)
    if waits:
        accounts.wait("disk latency is high")
        now += 10_000.0
        accounts.wait(None)
    hour[0] = 7
    accounts.wait("outside 22:00-06:00")
    found = accounts.status()
    assert (found.state, found.rate) == ("waiting", None)
    assert found.eta_seconds == pytest.approx((15 + (2 if waits else 1)) * 3600)


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
    with pytest.raises(StopJobError, match=accounts.STAYED):
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
    monkeypatch.setattr("zconsole.rebalance.job.accounts.os", silent)
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
