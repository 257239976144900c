from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.table import rows
from tests.unit.rebalance.job.counted import accounts_of, terms_with, watch_of
from zconsole.errors import UnavailableError
from zconsole.pool.allocator import Space
from zconsole.pool.model import Volumes
from zconsole.rebalance.backend import EndedFile, JobStatus
from zconsole.rebalance.engine.item import FileOutcome
from zconsole.rebalance.engine.journal import FileRow, Journal
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.job import creation
from zconsole.rebalance.job.accounts import JobAccounts, SpreadWatch
from zconsole.rebalance.job.job import PUBLISH, terms_of
from zconsole.rebalance.job.job_store import Record
from zconsole.rebalance.planning import forecast, plan
from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import FactsReader, JobDirectory, PoolFacts
from zconsole.rebalance.planning.forecast import DirectoryPlan
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.rebalance.planning.survey import Ages, Survey

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

    def datasets(self, pool: str) -> tuple[int, Volumes]:
        if self.hangs:
            raise UnavailableError("zfs gave no answer")
        return 120, Volumes(2, 110)


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


@rows(
    ("hangs", "why", "told"),
    [(False, "done", 3), (False, "stop", 0), (True, "done", 0)],
)
def test_a_finished_job_tells_what_volumes_keep_uneven(
    journal: Journal, hangs: bool, why: str, told: int
) -> None:
    accounts = accounts_of(journal, lambda: 0.0)
    accounts.watch = effect(Pool(hangs=hangs, syncs=-9))  # 80 and 40 are still allocated
    accounts.end(why)
    assert len(accounts.status().notes) == told
    assert not told or "2 volumes hold 110, which no rebalance moves" in accounts.status().notes


def test_an_even_pool_is_not_told_of_its_volumes(journal: Journal) -> None:
    accounts = accounts_of(journal, lambda: 0.0)
    accounts.watch = effect(Pool())
    accounts.end("done")
    assert accounts.status().notes == ()


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
