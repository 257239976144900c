"""Jobs between two runs: which can be started again, and what the log records."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.test_rebalance import Shell
from zconsole.cli import rebalance
from zconsole.cli.main import main
from zconsole.errors import ExitCode, NotUnderstoodError, ZconsoleError
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job import control, creation, job_store, runner
from zconsole.rebalance.job.creation import Created
from zconsole.rebalance.job.job import Request, request_file, requested
from zconsole.rebalance.job.job_store import Record
from zconsole.rebalance.job.locks import BusyTreeError, TreeLocks
from zconsole.rebalance.job.runner import Show
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.forecast import RebalancePlan
from zconsole.rebalance.planning.settings import Settings
from zconsole.system.audit import NAME, AuditError, MemoryLog

pytestmark = pytest.mark.slow


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    root = tmp_path / "tree"
    root.mkdir()
    (root / "file").write_bytes(b"x")
    return root


def planned(tree: Path, **words: Any) -> Created:
    return creation.create(Settings((str(tree),), allow_non_zfs=True), FactsReader(), **words)


def told(record: Record, **status: Any) -> None:
    """Write the status of a job."""
    with closing(Journal.open(record.journal)) as journal:
        journal.set("status", status)


def created(tree: Path, state: str, why: str | None = None) -> Record:
    record = planned(tree).record
    told(record, state=state, why=why)
    return record


@pytest.mark.parametrize(
    ("state", "why", "again"),
    [
        ("running", None, True),
        ("paused", "paused", True),
        ("planned", None, True),
        ("stopped", "terminated", True),
        ("stopped", "hung up", True),
        ("stopped", "interrupted", False),
        ("stopped", "stop", False),
        ("stopped", "no space left", False),
        ("finished", "done", False),
    ],
)
def test_what_its_operator_did_not_end_is_resumed_with_all(
    tree: Path, state: str, why: str | None, again: bool
) -> None:
    record = created(tree, state, why)
    assert control.resumable([]) == ([record] if again else [])


@pytest.mark.parametrize("state", ["running", "paused", "planned"])
def test_a_job_at_work_is_left_alone(tree: Path, state: str) -> None:
    record = created(tree, state)
    with job_store.locked(record):
        assert control.resumable([]) == []


@pytest.mark.parametrize("state", ["finished", "stopped"])
def test_a_job_has_ended_once_its_process_lets_go_of_it(tree: Path, state: str) -> None:
    """Between the two, a resume would start none, and its order would reach nobody."""
    record = created(tree, state, "why")
    with job_store.locked(record):
        assert control.status(record).state == "running"
        with pytest.raises(ZconsoleError, match="is running already"):
            control.run_again(record, {})
    assert control.status(record).state == state
    with pytest.raises(ZconsoleError, match="does not run"):
        control.steer(MemoryLog(), record, "pause")


def test_a_resume_right_after_a_stop_starts_the_job_again(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, started = created(tree, "running"), list[Record]()
    monkeypatch.setattr(control, "start", started.append)
    monkeypatch.setattr(control, "START_SECONDS", 0.1)
    with ExitStack() as process:
        process.enter_context(job_store.locked(record))
        control.steer(MemoryLog(), record, "stop")
        with pytest.raises(ZconsoleError, match="still stopping"):
            control.resume(MemoryLog(), record)
        assert requested(record.journal).order == "stop"
        monkeypatch.setattr(control, "START_SECONDS", 60.0)
        ended = threading.Timer(0.1, process.pop_all().close)
        ended.start()
        control.resume(MemoryLog(), record)
    assert (requested(record.journal).order, started) == ("run", [record])


@pytest.mark.parametrize("state", ["running", "finished", "stopped"])
def test_a_job_that_is_not_at_work_moves_no_file(tree: Path, state: str) -> None:
    """A job that died while running has a last report that says it was moving files."""
    record = created(tree, state)
    told(record, state=state, rate=1e6, mean_rate=2e6, eta_seconds=9.0, current="/tree/file")
    found = control.status(record)
    assert (found.rate, found.eta_seconds, found.current) == (None, None, None)
    assert found.mean_rate == 2e6
    with job_store.locked(record):
        assert (control.status(record).current is None) is (state != "running")


@pytest.mark.parametrize(
    ("state", "rate", "ago", "left"),
    [
        ("waiting", None, 600, 3000),
        ("waiting", None, 9000, 0),
        ("waiting", None, -60, 3600),
        ("running", 1e6, 600, 3600),
        ("waiting", 1e6, 600, 3600),  # for busy disks: these hold the end back
    ],
)
def test_the_end_comes_nearer_while_a_job_waits_for_its_hours(
    tree: Path, state: str, rate: float | None, ago: float, left: float
) -> None:
    """The job writes its status when the wait begins, and not again until it ends."""
    record = created(tree, state)
    told(record, state=state, rate=rate, eta_seconds=3600.0, t=time.time() - ago)
    with job_store.locked(record):
        assert control.status(record).eta_seconds == pytest.approx(left, abs=60)


def test_a_request_changes_what_it_names_and_a_journal_without_one_asks_nothing(
    tree: Path,
) -> None:
    record = created(tree, "running")
    request_file(record.journal).unlink()
    assert requested(record.journal) == ("run", {})
    control.ask(record, "pause", {"rate": 5.0})
    control.ask(record, None, {"min_free": 0.5})
    assert requested(record.journal) == ("pause", {"rate": 5.0, "min_free": 0.5})


def test_what_two_operators_ask_at_the_same_time_counts(tree: Path, monkeypatch) -> None:
    record = created(tree, "stopped")
    other = threading.Thread(target=control.ask, args=(record, None, {"rate": 5.0}))

    def slowly(journal: Path) -> Request:
        if not other.ident:
            found = requested(journal)
            other.start()
            other.join(0.5)  # it has written by now, unless it waits for its turn
            return found
        return requested(journal)

    monkeypatch.setattr(control, "requested", slowly)
    control.ask(record, "pause")
    other.join()
    assert requested(record.journal) == ("pause", {"rate": 5.0})


def test_a_damaged_request_is_said_to_be_one(tree: Path) -> None:
    record = created(tree, "stopped")
    for damaged in (b"", b"[]", b'{"order"'):
        request_file(record.journal).write_bytes(damaged)
        with pytest.raises(NotUnderstoodError, match=r"\.db\.request says"):
            control.status(record)


def test_a_journal_in_the_place_of_one_that_was_deleted_has_no_request(tree: Path) -> None:
    record = created(tree, "stopped")
    control.ask(record, "stop", {"rate": 1.0})
    record.journal.unlink()
    job_store.remove(record)
    planned(tree, journal_path=record.journal)
    assert requested(record.journal) == ("run", {})


def test_limits_are_seen_once_the_job_obeys_them(tree: Path) -> None:
    record = created(tree, "running")
    told(record, state="running", limits={"rate": 9.0})
    control.ask(record, None, {"rate": 5.0})
    assert control.status(record).limits.rate == 5.0, "dead: those it will obey"
    with job_store.locked(record):
        assert control.status(record).limits.rate == 9.0


def test_nobody_can_run_a_job_while_its_operator_is_asked(tree: Path) -> None:
    asked = []

    def ask(plan: RebalancePlan) -> None:
        (record,) = job_store.records()
        assert control.resumable([]) == []
        found = control.status(record)
        assert (found.state, found.why) == ("waiting", "waiting for confirmation")
        with pytest.raises(ZconsoleError, match="running already"), job_store.locked(record):
            pass
        asked.append(plan.directories[0].files)

    record = planned(tree, agreed=False, ask=ask).record
    assert asked == [1]
    assert control.resumable([]) == [record]


def test_a_no_leaves_nothing(tree: Path) -> None:
    def ask(_plan: RebalancePlan) -> None:
        raise ZconsoleError("nothing was done")

    with pytest.raises(ZconsoleError, match="nothing was done"):
        planned(tree, agreed=False, ask=ask)
    assert list((tree.parent / "state/rebalance").iterdir()) == []


def test_a_death_before_the_answer_leaves_a_job_that_only_its_name_begins(tree: Path) -> None:
    """SIGKILL leaves a plan and no lock."""

    def die(_plan: RebalancePlan) -> None:
        for file in (tree.parent / "state/rebalance").iterdir():
            content[file] = file.read_bytes()
        raise KeyboardInterrupt

    content: dict[Path, bytes] = {}
    with pytest.raises(KeyboardInterrupt):
        planned(tree, agreed=False, ask=die)
    for file, data in content.items():
        file.write_bytes(data)
    (left,) = control.list_jobs([])
    assert (left.state, left.agreed) == ("planned", False)
    assert control.resumable([]) == []


def test_a_job_whose_directory_is_gone_says_so_when_it_is_resumed(tree: Path) -> None:
    record, other = created(tree, "running"), created(tree, "running")
    shell = Shell(tree.parent)
    tree.rename(tree.with_name("elsewhere"))
    for _ in range(2):  # the log has the first answer
        done = shell("resume", record.job, "--json")
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.count("No such file or directory") == 1
        assert "resumed" not in done.stderr
    tree.with_name("elsewhere").rename(tree)
    other.journal.unlink()
    assert shell("resume", other.job).returncode == 3
    done = shell("resume", "--all")
    assert (done.returncode, done.stderr) == (0, f"resumed job {record.job}\n")
    assert shell.wait(lambda status: status["state"] == "finished")["files_done"] == 1


def test_no_job_comes_between_the_plan_of_another_and_its_run(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []

    def late(record: Record, show: Show, made: Created | None = None) -> tuple[int, bool]:
        with pytest.raises(BusyTreeError):
            planned(tree)
        assert control.status(record).state == "running"
        done = real(record, show, made)
        ran.append(record.job)
        return done

    real = runner.execute
    monkeypatch.setattr(runner, "execute", late)
    assert main(["rebalance", "run", "--yes", "--allow-non-zfs", str(tree)]) == ExitCode.OK
    assert [view.job for view in control.list_jobs([])] == ran
    TreeLocks(Sys(), [os.fsencode(tree)]).close()  # the locks end with the job
    assert not any(map(job_store.is_alive, job_store.records()))


def test_a_tree_that_a_link_leads_elsewhere_to_since_is_locked_anew(tree: Path) -> None:
    (new := tree.with_name("new")).mkdir()
    old, now = ([os.fsencode(path)] for path in (tree, new))
    locks = runner._locked(Sys(), now, TreeLocks(Sys(), old))
    with pytest.raises(BusyTreeError):
        TreeLocks(Sys(), now)
    locks.close()
    TreeLocks(Sys(), old).close()


def test_a_job_that_could_still_say_why_it_died_is_heard(tree: Path) -> None:
    record = created(tree, "running")
    full = "the job's journal: database or disk is full"
    record.log.write_text(f"job {record.job}\nzconsole: {full}\n")
    assert control.status(record).why == f"{full}; resume it"
    record.log.write_text("zconsole: of before\nskipped: /tree/file: changed\n")
    assert control.status(record).why == "its process is gone; resume it"
    record.log.write_text("zconsole: of before\n")
    os.utime(record.log, (1000.0, 1000.0))  # what it said before it was resumed is not why
    told(record, state="running", t=2000.0)
    assert control.status(record).why == "its process is gone; resume it"


@pytest.mark.parametrize("line", ["{", "[" * 100_000])
def test_a_job_whose_day_is_damaged_hides_no_other(tree: Path, line: str) -> None:
    record = created(tree, "stopped")
    with closing(Journal.open(record.journal)) as journal:
        journal._db.execute("INSERT INTO days VALUES ('2026-01-01', ?)", (line,))
    unread: list[control.UnreadableJob] = []
    assert control.list_jobs(unread) == []
    assert "does not understand" in str(unread[0][1])


def test_a_job_refused_after_a_while_was_not_resumed(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine may answer late what filesystem its directories are on."""
    record = created(tree, "stopped")
    refuse = "import sys, time; time.sleep(1); print('zconsole: refused: elsewhere'); sys.exit(1)"

    def refused(_: Sequence[str], log: Path) -> int:
        out = (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        argv = [sys.executable, "-c", refuse]
        return os.posix_spawn(argv[0], argv, os.environ, file_actions=[out])

    monkeypatch.setattr(control, "start_detached", refused)
    monkeypatch.setattr(control, "BEGINNING", 0.1)
    monkeypatch.setattr(job_store, "is_alive", lambda _: True)
    with pytest.raises(control.EndedAtOnceError, match="refused: elsewhere"):
        control.start(record)


JOB = Record("abc123", Path("/nowhere/abc123.db"), Path("/nowhere/abc123.json"))


class Unwritable(MemoryLog):
    """A log for which neither file nor system log works."""

    def write(self, t: float, event: str, **fields: Any) -> None:
        raise AuditError("audit log not writable")


def test_a_job_that_cannot_be_logged_is_let_go(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebalance, "audit_log", Unwritable)
    made = planned(tree, hold=True)
    with pytest.raises(AuditError):
        rebalance._execute(made.record, as_json=False, made=made)
    assert not any(map(job_store.is_alive, job_store.records()))
    TreeLocks(Sys(), [os.fsencode(tree)]).close()
    assert [view.state for view in control.list_jobs([])] == ["planned"]


class Orders:
    """Replaces the jobs, all running; ``told`` is what the log had when an order came."""

    def __init__(self, log: MemoryLog) -> None:
        self.given: list[tuple[Any, ...]] = []
        self.told: list[list[str]] = []
        self._log = log

    def take(self, record: Record, *order: Any) -> None:
        self.told.append([line["event"] for line in self._log.records])
        self.given.append(order)
        if order[0] == "stop":
            raise ZconsoleError("job abc123 does not run")

    def start(self, record: Record) -> None:
        self.take(record, "start")


def made(monkeypatch: pytest.MonkeyPatch, log: MemoryLog) -> Orders:
    orders = Orders(log)
    monkeypatch.setattr(job_store, "is_alive", lambda record: True)
    monkeypatch.setattr(control, "ask", orders.take)
    monkeypatch.setattr(control, "start", orders.start)
    return orders


def test_each_order_is_told_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    orders = made(monkeypatch, log)
    control.steer(log, JOB, "pause")
    control.steer(log, JOB, None, {"rate": 1e6})
    control.resume(log, JOB, {"max_bytes": 7})
    control.detach(log, JOB)
    with pytest.raises(ZconsoleError):
        control.steer(log, JOB, "stop")
    begun, ended = log.records[::2], log.records[1::2]
    actions = ["pause", "limits", "resume", "start", "stop"]
    assert [line["action"] for line in begun] == [line["action"] for line in ended] == actions
    assert [line["ok"] for line in ended] == [True] * 4 + [False]
    assert ended[-1]["result"] == "failed: job abc123 does not run"
    assert {(line["kind"], line["job"]) for line in log.records} == {("job", "abc123")}
    assert [line["limits"] for line in begun][1:3] == [{"rate": 1e6}, {"max_bytes": 7}]
    assert all(told[-1] == "begun" for told in orders.told)


def test_without_a_log_jobs_are_paused_and_stopped_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Unwritable()
    orders = made(monkeypatch, log)
    control.steer(log, JOB, "pause")
    with pytest.raises(ZconsoleError, match="does not run"):
        control.steer(log, JOB, "stop")
    for order in (
        lambda: control.steer(log, JOB, None, {"rate": 1e6}),
        lambda: control.steer(log, JOB, "pause", {"rate": 1e6}),
        lambda: control.resume(log, JOB),
        lambda: control.detach(log, JOB),
    ):
        with pytest.raises(AuditError):
            order()
    assert orders.given == [("pause", None), ("stop", None)]


def lines(shell: Shell) -> list[dict[str, Any]]:
    text = (shell.area / "state" / NAME).read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_job_is_told_with_its_settings_and_its_end(tree: Path) -> None:
    shell = Shell(tree.parent)
    ran = shell.apart("run", "--yes", "--allow-non-zfs", "--max-bytes=9000000", tree)
    assert ran.returncode == 0, ran.stderr
    begun, ended = lines(shell)
    assert (begun["event"], begun["kind"], begun["action"]) == ("begun", "job", "run")
    assert begun["settings"]["dirs"] == [str(tree)]
    assert begun["limits"]["max_bytes"] == 9_000_000
    assert "--allow-non-zfs" in begun["argv"]
    assert (ended["event"], ended["ok"], ended["job"]) == ("ended", True, begun["job"])
    assert shell.apart("stop", begun["job"]).returncode == 1
    assert [line["action"] for line in lines(shell)[2:]] == ["stop", "stop"]
    assert lines(shell)[-1]["ok"] is False


def test_no_file_is_moved_without_a_line_in_some_log(tree: Path) -> None:
    shell, tmp_path = Shell(tree.parent), tree.parent
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / NAME).mkdir()
    if Path("/dev/log").exists():
        pytest.skip("this machine's system log takes the lines")
    before = (tree / "file").stat()
    ran = shell.apart("run", "--yes", "--allow-non-zfs", tree)
    assert ran.returncode == 1
    assert "audit log not writable" in ran.stderr
    assert (tree / "file").stat() == before
