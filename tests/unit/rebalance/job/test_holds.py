"""Reasons for a running job to wait, checked in parallel with its work."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.faults.harness import ask
from tests.table import rows
from tests.unit.rebalance.job.counted import accounts_of, job_of, terms_with
from zconsole.errors import ZconsoleError
from zconsole.pool.allocator import Space
from zconsole.rebalance.engine.item import SkipError, StopJobError
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.held_vdevs import PREPARING, MachineHolds
from zconsole.rebalance.job import holds
from zconsole.rebalance.job.accounts import SpreadWatch
from zconsole.rebalance.job.holds import (
    CHECK_INTERVAL,
    EXPORTS_INTERVAL,
    PATIENCE,
    POOL_INTERVAL,
    SNAPSHOT_INTERVAL,
    Holds,
    PeriodicCheck,
    PoolCheck,
    PoolWatch,
    SlowDisks,
    WorkPhase,
)
from zconsole.rebalance.job.job import FreeSpace, Job, request_file
from zconsole.rebalance.planning.exports import Shared
from zconsole.rebalance.planning.facts import Dataset, FactsReader, JobDirectory, Run
from zconsole.rebalance.planning.settings import Floor, Limits, Settings
from zconsole.system.patient import Patient
from zconsole.system.process import Completed


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Paced(Holds):
    """Holds of a job with a rate limit, and a reason to wait that the test gives."""

    def __init__(
        self,
        clock: Clock,
        rate: float | None = None,
        reason: Callable[[], str | None] = lambda: None,
        told: Callable[[str | None], None] = lambda why: None,
        service: Callable[[], None] = lambda: None,
    ) -> None:
        clocks, settings = JobClocks(clock, clock, sleep=clock.sleep), Settings(())
        terms = SimpleNamespace(settings=settings)
        limits = Limits(rate=rate)
        job = SimpleNamespace(clocks=clocks, limits=limits, terms=terms, places=[], pool=None)
        super().__init__(*cast("Any", (job, SimpleNamespace(wait=told), service)))
        self.reason = reason

    def why(self, _: WorkPhase) -> str | None:
        """Return the test's reason."""
        return self.reason()


@rows(
    ("count", "ticks", "work", "lasts"),
    [(100, 100, 0.0, 10.0), (400, 10, 0.5, 5.0)],  # time that the work itself took counts
)
def test_the_rate_limit_holds_on_average(count: int, ticks: int, work: float, lasts: float) -> None:
    clock = Clock()
    pacer = Paced(clock, 1000.0)
    for _ in range(ticks):
        pacer.tick(count, WorkPhase.COPYING)
        clock.now += work
    assert clock.now - 100 == pytest.approx(lasts, rel=0.1)


def test_what_holds_a_job_up_is_waited_for_and_told() -> None:
    clock, told = Clock(), list[str | None]()
    opens = clock.now + 3
    pacer = Paced(clock, None, lambda: None if clock.now >= opens else "paused", told.append)
    pacer.tick(1, WorkPhase.COPYING)
    assert told == ["paused", None]
    assert opens <= clock.now < opens + 1


def test_orders_are_noticed_within_a_second_of_a_slow_limit() -> None:
    clock = Clock()
    stops = clock.now + 2

    def reason() -> str | None:
        if clock.now >= stops:
            raise StopJobError("stop")
        return None

    pacer = Paced(clock, 1.0, reason)
    with pytest.raises(StopJobError):
        pacer.tick(10_000, WorkPhase.COPYING)
    assert clock.now < stops + 1
    assert CHECK_INTERVAL < 1


def test_leases_are_served_while_waiting() -> None:
    clock, served = Clock(), list[float]()
    pacer = Paced(clock, 100.0, service=lambda: served.append(clock.now))
    pacer.tick(100, WorkPhase.COPYING)
    gaps = [b - a for a, b in pairwise(served)]
    assert served
    assert max(gaps) < 0.1


ONLINE = "  pool: tank\n state: ONLINE\n  scan: none requested\n"
SCRUB = "  pool: tank\n state: ONLINE\n  scan: scrub in progress since Sat Nov 21 10:00:00 2026\n"


def answering(*texts: str) -> tuple[Callable[[Sequence[str], float], Completed], threading.Event]:
    """Fake zfs and zpool with these outputs; all but the first come once the event is set."""
    left, ready = list(texts), threading.Event()

    def run(argv: Sequence[str], _deadline: float) -> Completed:
        if len(left) < len(texts):
            assert ready.wait(5)
        return Completed(tuple(argv), 0, left.pop(0), "")

    return run, ready


def watching(
    run: Run, clock: Clock, settings: Settings | None = None, notes: list[str] | None = None
) -> PoolWatch:
    """Return the watch of the pool of a job on tank/a."""
    place = JobDirectory(b"/a", "zfs", "tank/a", Dataset("tank/a", {}))
    terms, clocks = terms_with(settings=settings or Settings(())), JobClocks(clock, clock)
    job = SimpleNamespace(reader=FactsReader(run), terms=terms, clocks=clocks, places=[place])
    return PoolWatch(cast("Job", job), "tank", [] if notes is None else notes)


def settle(check: PeriodicCheck[Any]) -> None:
    while check.is_running:
        threading.Event().wait(0.001)


def test_a_slow_zpool_does_not_hold_up_the_work() -> None:
    clock = Clock()
    status, ready = answering(ONLINE, SCRUB)

    def run(argv: Sequence[str], deadline: float) -> Completed:
        free = Completed(tuple(argv), 0, "50\t100\n", "")
        return free if argv[1] == "list" else status(argv, deadline)

    gate = watching(run, clock).check
    assert gate() == PoolCheck(free=0.5)
    clock.now += POOL_INTERVAL
    assert gate() == PoolCheck(free=0.5)
    ready.set()
    settle(gate)
    assert gate() == PoolCheck("a scrub is running")


REMOVAL = (
    "  pool: tank\n state: ONLINE\n  scan: none requested\n"
    "remove: Evacuation of mirror in progress since Sat Aug  5 12:00:00 2023\n"
    "\t1.2G copied out of 4G at 100M/s, 30.00% done, 0h0m to go\n"
)
EXPANSION = (
    "  pool: tank\n state: ONLINE\n  scan: none requested\n"
    "expand: expansion of raidz1-0 in progress since Fri Nov 20 10:31:33 2026\n"
    "\t642M / 1G copied at 35.7M/s, 38.04% done, 00:00:29 to go\n"
)


@rows(
    ("text", "during_scan", "why"),
    [
        (SCRUB, False, "a scrub is running"),  # seen before the first file
        (SCRUB, True, None),
        (REMOVAL, True, "a vdev removal is running"),
        (EXPANSION, True, "a raidz expansion is running"),
    ],
)
def test_a_pool_that_moves_blocks_itself_is_waited_for_and_scans_are_unless_permitted(
    text: str, during_scan: bool, why: str | None
) -> None:
    run, ready = answering(text, "50\t100\n")
    ready.set()
    found = watching(run, Clock(), Settings((), during_scan=during_scan)).check()
    assert found is not None
    assert found.why == why


class Snapshotted:
    """Holds of a job with 20 bytes on tank/a to move, stored in 10; only snapshots matter."""

    def __init__(
        self,
        run: Callable[[Sequence[str], float], Completed],
        clock: Clock,
        room: int,
        refquota: bool = False,
        pool_free: float | None = None,
        **properties: str,
    ) -> None:
        self.notes: list[str] = []
        self.status = ONLINE
        above = properties.pop("above", "-")

        def answer(argv: Sequence[str], deadline: float) -> Completed:
            if argv[0] == "zpool":
                return Completed(tuple(argv), 0, self.status, "")
            if argv[1] == "get":
                one = argv[-1] == "tank/a"
                text = "".join(f"{k}\t{v}\n" for k, v in properties.items()) if one else above
                return Completed(tuple(argv), 0, text, "")
            return run(argv, deadline)

        watch = watching(answer, clock, notes=self.notes)
        self.check = watch.new_pin
        holds = cast("Any", object.__new__(Holds))
        holds.accounts = SimpleNamespace(left=lambda: 20)
        terms = SimpleNamespace(stored=0.5, floors={"/tank/a": Floor(0, 100.0)})
        space = SimpleNamespace(room=lambda: room)
        holds.job = SimpleNamespace(space=space, terms=terms, limits=Limits(min_free=0.1))
        holds._has_refquota = refquota
        watch.check = PeriodicCheck(lambda: PoolCheck(free=pool_free), POOL_INTERVAL, clock)
        holds._of_pool = watch
        self.why: Callable[[], str | None] = holds._pool

    def later(self) -> str | None:
        """Return the reason to wait after the next check."""
        self.why()
        settle(self.check)
        return self.why()


def test_a_new_snapshot_that_would_pin_too_much_holds_the_job_up() -> None:
    clock = Clock()
    run, ready = answering("50\t0\n", "150\t0\n50\t0\n", "50\t0\n")
    gate = Snapshotted(run, clock, room=5)
    assert gate.why() is None
    clock.now += SNAPSHOT_INTERVAL
    ready.set()
    assert gate.later() == "a new snapshot pins old blocks: 10 bytes left to move, 5 free"
    assert len(gate.notes) == 1
    assert "tank/a" in gate.notes[0]
    clock.now += SNAPSHOT_INTERVAL
    assert gate.later() is None


@rows(
    ("refquota", "pool_free", "quotas", "waits"),
    [
        (False, 0.9, {}, True),
        (True, 0.9, {}, False),
        (True, 0.19, {}, True),
        (True, None, {}, True),
        (True, 0.9, {"quota": "100", "used": "91"}, True),
        (True, 0.9, {"quota": "100", "used": "90"}, False),
        (True, 0.9, {"above": "9"}, True),
        (True, 0.9, {"above": "10"}, False),
    ],
)
def test_what_a_new_snapshot_pins_counts_in_a_quota_but_in_no_refquota(
    refquota: bool, pool_free: float | None, quotas: dict[str, str], waits: bool
) -> None:
    clock = Clock()
    run, ready = answering("50\t0\n", "150\t0\n50\t0\n")
    gate = Snapshotted(run, clock, 5, refquota, pool_free, **quotas)
    assert gate.why() is None
    clock.now += SNAPSHOT_INTERVAL
    ready.set()
    assert (gate.later() is not None) == waits


def test_a_new_checkpoint_that_would_pin_too_much_holds_the_job_up() -> None:
    clock = Clock()
    run, ready = answering(*["50\t0\n"] * 6)
    gate = Snapshotted(run, clock, room=5)
    ready.set()
    has = "checkpoint: created Sat Aug  5 12:00:00 2023, consumes 1M\n"
    for status, why, notes in (
        (ONLINE, None, 0),
        (ONLINE + has, "a new checkpoint pins old blocks: 10 bytes left to move, 5 free", 1),
        (ONLINE + has, "a new checkpoint pins old blocks: 10 bytes left to move, 5 free", 1),
        (ONLINE.replace("ONLINE", "UNKNOWN"), "a new checkpoint pins", 1),
        (ONLINE + has, "a new checkpoint pins old blocks: 10 bytes left to move, 5 free", 1),
        (ONLINE, None, 1),
    ):
        gate.status = status
        found = gate.later()
        assert (found is None) if why is None else (found or "").startswith(why)
        assert len(gate.notes) == notes
        clock.now += SNAPSHOT_INTERVAL


@rows(("options", "asked"), [("", True), ("P", True), ("C", True), ("S", False), ("SC", False)])
def test_what_leaves_blocks_of_snapshots_alone_does_not_wait_for_them(
    tmp_path: Path, options: str, asked: bool
) -> None:
    clock, seen = Clock(), list[str]()

    def run(argv: Sequence[str], _deadline: float) -> Completed:
        seen.append(" ".join(argv))
        return Completed(tuple(argv), 0, "", "")

    dataset = Dataset("tank/a", {})
    place = JobDirectory(os.fsencode(tmp_path), "zfs", "tank/a", dataset)
    with closing(Journal.create(tmp_path / f"job{options}.db")) as journal:
        settings, clocks = Settings((), rewrite_options=options), JobClocks(clock, clock)
        job = job_of(journal, clocks, FactsReader(run), place, settings=settings)
        made = Holds(job, accounts_of(journal, clock), lambda: None)
        assert made._of_pool is not None
        made._of_pool.new_pin()
    assert any("zfs list" in words for words in seen) == asked


def test_snapshots_that_are_held_meanwhile_are_noticed() -> None:
    clock = Clock()
    run, ready = answering("50\t1\n40\t0\n", "50\t1\n40\t2\n", "50\t0\n40\t2\n")
    gate = Snapshotted(run, clock, room=50)
    gate.why()
    ready.set()
    for _ in range(2):
        clock.now += SNAPSHOT_INTERVAL
        gate.later()
    assert gate.notes == ["snapshots of tank/a were held: what they keep stays until a release"]


def test_backing_off_grows_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, waits = Clock(), [0.5, 0.5, None, 0.001]
    backoff = SlowDisks(list, clock)
    monkeypatch.setattr(SlowDisks, "latency", lambda _: waits.pop(0))
    assert backoff(0.1) == "disk latency is high"
    clock.now += 1
    assert backoff(0.1) is not None
    clock.now += 1
    assert backoff(0.1) is None


@rows(
    ("devices", "rows", "waits"),
    [
        # Only disks with files of the job count.
        (
            [["/dev/sda"]],
            [{"sda": (100, 400), "sdb": (900, 0)}] * 2 + [{"sda": (140, 2400), "sdb": (9999, 0)}],
            [None, None, 0.05],
        ),
        # Disks at 100 ms count, however many requests a log completes meanwhile.
        *(
            (
                devices,
                [{"sda": (600 * at, 60_000 * at), "log": (6000 * at, 600 * at)} for at in range(3)],
                [None, 0.1, 0.1],
            )
            for devices in ([["/dev/sda"], ["/dev/log"]], [["/dev/log"], ["/dev/sda"]])
        ),
    ],
)
def test_the_wait_is_that_of_requests_completed_since_by_the_slowest_class_of_devices(
    devices: list[list[str]], rows: list[dict[str, tuple[int, int]]], waits: list[float | None]
) -> None:
    looks = iter(rows)

    def table() -> dict[str, str]:
        line = "8 0 {} {} 0 0 {} 0 0 0 0 0 0 0"
        return {name: line.format(name, *counts) for name, counts in next(looks).items()}

    def names(path: str, known: Collection[str]) -> tuple[str, ...]:
        return tuple(name for name in known if path == f"/dev/{name}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holds, "diskstats_names", names)
        latency = SlowDisks(lambda: devices, Clock(), table).latency
        assert [latency() for _ in rows] == [wait and pytest.approx(wait) for wait in waits]


RATE = 1000.0


@dataclass
class Control:
    """A job with a rate limit, off ZFS, at an hour set by the test."""

    job: Job
    holds: Holds
    hour: list[int]

    def why(self) -> str | None:
        """Return the reason to wait, or to end."""
        try:
            return self.holds.why(WorkPhase.COPYING)
        except StopJobError as error:
            return f"ends: {error}"

    def order(self, order: str, **limits: Any) -> None:
        """Give an order as another process does."""
        ask(self.job.journal.path, order, **limits)


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Control]:
    clock, hour = Clock(), [12]
    local = lambda: datetime(2026, 11, 23, hour[0], tzinfo=UTC)  # noqa: E731
    clocks = JobClocks(clock, clock, sleep=clock.sleep, local=local)
    settings = Settings((str(tmp_path),), limits=Limits(rate=RATE))
    with closing(Journal.create(tmp_path / "job.db")) as journal:
        floors = {str(tmp_path): Floor(0, 100.0)}
        accounts = accounts_of(journal, clock, clocks)
        job = job_of(journal, clocks, settings=settings, floors=floors)
        made = Holds(job, accounts, lambda: None)
        yield Control(job, made, hour)


def test_limits_of_the_settings_count_until_others_are_set(control: Control) -> None:
    assert control.why() is None
    before = control.job.limits
    assert before == Limits(rate=RATE)
    control.order("run", rate=5.0, min_free=0.5)
    assert control.why() is None
    assert control.job.limits == Limits(rate=5.0, min_free=0.5)
    assert list(control.job.terms.reserves_at(0.5).values()) == [50]


@rows(
    ("order", "hour", "stop", "reason"),
    [
        ("run", 23, None, None),
        ("run", 3, None, None),
        ("run", 6, None, "outside 22:00-06:00"),
        ("run", 12, None, "outside 22:00-06:00"),
        ("pause", 12, None, "paused"),
        ("stop", 12, None, "ends: stop"),
        ("pause", 12, "terminated", "ends: terminated"),
    ],
)
def test_a_new_window_holds_the_job_up_and_orders_are_obeyed_before(
    control: Control, order: str, hour: int, stop: str | None, reason: str | None
) -> None:
    control.order(order, window="22:00-06:00")
    control.hour[0], control.job.stop = hour, stop
    assert control.why() == reason


def test_a_request_that_cannot_be_read_ends_a_job(control: Control) -> None:
    request_file(control.job.journal.path).write_bytes(b"{")
    assert "request says what this version does not understand" in (control.why() or "")


@pytest.mark.parametrize("phase", WorkPhase)
def test_the_wanted_spread_ends_a_job_unless_copies_are_on_their_way(
    control: Control, phase: WorkPhase
) -> None:
    effect = SimpleNamespace(reached=lambda target, handled: target == 0.3)
    control.holds.accounts.watch = cast("SpreadWatch", effect)
    control.order("run", until_spread=0.2)
    assert control.holds.why(phase) is None
    control.order("run", until_spread=0.3)
    if phase in (WorkPhase.COPYING, WorkPhase.CHECKING):
        assert control.holds.why(phase) is None
    else:
        with pytest.raises(StopJobError, match="target spread reached"):
            control.holds.why(phase)


@rows(
    ("phase", "room", "in_flight", "given_up"),
    [
        (WorkPhase.COPYING, 0, 1, True),
        (WorkPhase.COPYING, -10, 5, False),  # others have filled it, and giving up frees little
        (WorkPhase.REWRITING, -10, 20, False),
        (WorkPhase.BETWEEN, -10, 20, False),
    ],
)
@pytest.mark.slow
def test_a_copy_that_itself_took_the_room_is_given_up(
    tmp_path: Path, phase: WorkPhase, room: int, in_flight: int, given_up: bool
) -> None:
    with at_the_floor(tmp_path / f"{phase}{room}{in_flight}.db", room) as (made, clock):
        made.accounts.unfinished = in_flight
        with pytest.raises(SkipError if given_up else StopJobError) as error:
            made.wait(phase)
        assert str(error.value) == ("too large for the free space" if given_up else "stop")
        assert clock.now - 100 >= (PATIENCE if given_up else 2 * PATIENCE)
        assert made.accounts.state == ("running" if given_up else "waiting")


@rows(
    ("free", "min_free", "phase", "waits"),
    [
        ("10\t100\n", 0.2, WorkPhase.BETWEEN, True),
        ("30\t100\n", 0.2, WorkPhase.BETWEEN, False),
        ("4\t100\n", None, WorkPhase.BETWEEN, True),
        ("6\t100\n", None, WorkPhase.BETWEEN, False),
        ("1\t100\n", 0.0, WorkPhase.BETWEEN, False),
        ("10\t100\n", 0.2, WorkPhase.COPYING, False),  # what is in flight frees some when it ends
        ("", 0.2, WorkPhase.BETWEEN, False),
        (None, 0.2, WorkPhase.BETWEEN, False),
    ],
)
def test_the_floor_is_the_pools_where_a_quota_is_tighter(
    tmp_path: Path, free: str | None, min_free: float | None, phase: WorkPhase, waits: bool
) -> None:
    def run(argv: Sequence[str], _deadline: float) -> Completed:
        text = {"list": free, "status": ONLINE}[argv[1]]
        return Completed(tuple(argv), int(text is None), text or "", "")

    with at_the_floor(tmp_path / f"{free!r}{min_free}{phase}.db", 5 << 40) as (made, _):
        job, place = made.job, JobDirectory(b"/a", "zfs", "tank/a", Dataset("tank/a", {}))
        job = job_of(job.journal, job.clocks, FactsReader(run), place)
        job.limits = Limits(min_free=min_free)
        holds = Holds(job, made.accounts, lambda: None)
        assert holds._space(phase) == ("no free space beyond what is kept free" if waits else None)


@rows(
    ("engine", "races", "phase", "waits"),
    [
        ("copy", False, WorkPhase.BETWEEN, True),
        ("copy", False, WorkPhase.COPYING, False),
        ("copy", True, WorkPhase.BETWEEN, False),
        ("rewrite", False, WorkPhase.BETWEEN, False),
    ],
)
def test_files_shared_since_the_job_began_are_not_copied_until_they_are_unshared(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    races: bool,
    phase: WorkPhase,
    waits: bool,
) -> None:
    shared = list[Shared]()
    monkeypatch.setattr(holds.exports, "look", lambda _run, patient: shared)
    settings = Settings((), accept_races=races)
    path, terms = tmp_path / f"{engine}{races}{phase}.db", {"engines": {"/": engine}}
    with at_the_floor(path, 1 << 40, settings=settings, **terms) as (made, clock):

        def why() -> str | None:
            clock.now += EXPORTS_INTERVAL
            made.why(phase)
            settle(made.shared)
            return made.why(phase)

        assert why() is None
        shared.append(Shared(server="ganesha.nfsd"))
        assert why() == (GANESHA if waits else None)
        shared.clear()
        assert why() is None


GANESHA = "/: exported over NFS: ganesha.nfsd is running, and may export anything"


def test_what_is_exported_is_asked_anew_before_work_goes_on_after_a_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, shared = threading.Event(), list[Shared]()
    patients = set[Patient]()

    def look(_run: object, patient: Patient) -> list[Shared]:
        patients.add(patient)
        looked.wait(60)
        return list(shared)

    monkeypatch.setattr(holds.exports, "look", look)
    path = tmp_path / "job.db"
    with at_the_floor(path, 1 << 40, engines={"/": "copy"}) as (made, clock):
        job = made.job
        assert made.why(WorkPhase.BETWEEN) is None
        # A pause, in which the question is asked, whatever is in flight.
        ask(path, "pause")
        shared.append(Shared(server="ganesha.nfsd"))
        looked.set()
        for phase in (WorkPhase.BETWEEN, WorkPhase.COPYING):
            clock.now += EXPORTS_INTERVAL
            assert made.why(phase) == "paused"
            settle(made.shared)
        looked.clear()
        ask(path, "run")
        assert made.why(WorkPhase.BETWEEN) == GANESHA
        # A sync that took hours, in which nobody could ask: the old answer is worth nothing.
        shared.clear()
        clock.now += 100 * EXPORTS_INTERVAL
        assert made.why(WorkPhase.COPYING) is None
        assert made.why(WorkPhase.BETWEEN) == holds.LOOKING
        job.stop = "interrupted"
        with pytest.raises(StopJobError):
            made.why(WorkPhase.BETWEEN)
        job.stop = None
        looked.set()
        settle(made.shared)
        assert made.why(WorkPhase.BETWEEN) is None
        assert len(patients) == 1  # what hung at one look is not asked again at the next


@contextmanager
def at_the_floor(path: Path, room: int, **terms: Any) -> Iterator[tuple[Holds, Clock]]:
    """Create holds of a job with ``room`` bytes left, which is stopped after twice the patience."""
    clock = Clock()
    clocks = JobClocks(clock, clock, sleep=clock.sleep)
    with closing(Journal.create(path)) as journal:
        job, accounts = job_of(journal, clocks, **terms), accounts_of(journal, clock, clocks)

        def service() -> None:
            if clock.now >= 100 + 2 * PATIENCE:
                job.stop = "stop"

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FreeSpace, "_look", lambda *_: {1: room})
            yield Holds(job, accounts, service), clock


def test_limits_that_change_during_a_wait_are_told() -> None:
    clock, told = Clock(), list[str | None]()
    pacer = Paced(clock, None, lambda: "paused" if clock.now < 101 else None, told.append)

    def served() -> None:
        if clock.now > 100.5 and pacer.job.limits.rate is None:
            pacer.job.limits = Limits(rate=1.0)

    pacer.service = served
    pacer.wait(WorkPhase.COPYING)
    assert told == ["paused", "paused", None]


def test_a_job_waits_until_full_vdevs_take_no_new_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, woken = MachineHolds(tmp_path, lambda: woken.append(clock.now)), list[float]()
    monkeypatch.setattr(holds, "MachineHolds", lambda: records)
    spaces = Space("mirror-0", 100, 60, weight=0.0), Space("mirror-1", 100, 0)
    settings = Settings((), fill_new=True)
    with at_the_floor(tmp_path / "a.db", 1 << 40, settings=settings, spaces=spaces) as (
        made,
        clock,
    ):

        def why() -> str | None:
            clock.now += POOL_INTERVAL
            made.why(WorkPhase.BETWEEN)
            assert made.unprepared is not None
            settle(made.unprepared)
            return made.why(WorkPhase.BETWEEN)

        assert why() == PREPARING
        (held,) = records.held()
        (vdev,) = held.vdevs
        assert (held.job, vdev.name) == ("abc123", "mirror-0")
        assert woken
        records.replaced(held, held.with_vdev(vdev, replace(vdev, left="too small")))
        assert why() is None
        assert "mirror-0 takes new writes: too small" in made.accounts.notes
        # A keeper that was killed is started again, also while the job is paused.
        ask(tmp_path / "a.db", "pause")
        before = len(woken)
        assert why() == "paused"
        assert len(woken) > before
        ask(tmp_path / "a.db", "run")
        # Once it has paused for an hour, the keeper has given the vdev back.
        (held,) = records.held()
        records.replaced(held, held.with_vdev(held.vdevs[0], vdev))
        assert why() == PREPARING


def test_a_job_waits_while_nobody_can_keep_vdevs_from_new_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise ZconsoleError("no keeper")

    monkeypatch.setattr(holds, "MachineHolds", lambda: MachineHolds(tmp_path, fails))
    spaces = (Space("mirror-0", 100, 60, weight=0.0),)
    settings = Settings((), fill_new=True)
    with at_the_floor(tmp_path / "a.db", 1 << 40, settings=settings, spaces=spaces) as (made, _):
        assert made.why(WorkPhase.BETWEEN) == f"{PREPARING}: no keeper"
