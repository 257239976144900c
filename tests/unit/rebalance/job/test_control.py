"""Jobs between two runs: which of them anybody may begin again."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.cli.test_rebalance import Shell
from zconsole.cli.main import main
from zconsole.errors import ExitCode, ZconsoleError
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job import control, execute, job_store
from zconsole.rebalance.job.execute import Show
from zconsole.rebalance.job.job_store import Record
from zconsole.rebalance.job.locks import BusyTreeError, TreeLocks
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.plan_model import RebalancePlan
from zconsole.rebalance.planning.settings import Settings

pytestmark = pytest.mark.slow


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    root = tmp_path / "tree"
    root.mkdir()
    (root / "file").write_bytes(b"x")
    return root


def created(tree: Path, state: str, why: str | None = None) -> job_store.Record:
    record = control.create(Settings((str(tree),), allow_non_zfs=True), FactsReader()).record
    journal = Journal.open(record.journal)
    journal.set("status", {"state": state, "why": why})
    journal.close()
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
    assert [found.record for found in control.resumable()] == ([record] if again else [])


@pytest.mark.parametrize("state", ["running", "paused", "planned"])
def test_a_job_at_work_is_left_alone(tree: Path, state: str) -> None:
    record = created(tree, state)
    lock = job_store.JobLock(record)
    try:
        assert control.resumable() == []
    finally:
        lock.close()


@pytest.mark.parametrize("state", ["running", "finished", "stopped"])
def test_a_job_that_is_not_at_work_moves_no_file(tree: Path, state: str) -> None:
    """Whoever died running told of a file last, too."""
    record = created(tree, state)
    moving = {"state": state, "rate": 1e6, "eta_seconds": 9.0, "current": "/tree/file"}
    with closing(Journal.open(record.journal)) as journal:
        journal.set("status", moving)
    told = control.status(record).as_json()
    assert [told[key] for key in ("rate", "eta_seconds", "current")] == [None] * 3
    lock = job_store.JobLock(record)
    try:
        found = control.status(record).as_json()
        assert (found["current"] is None) is (state != "running")
    finally:
        lock.close()


def test_nobody_can_run_a_job_while_its_operator_is_asked(tree: Path) -> None:
    asked = []

    def ask(plan: RebalancePlan) -> None:
        (record,) = job_store.records()
        assert control.resumable() == []
        found = control.status(record)
        assert (found.state, found.why) == ("waiting", "its operator is asked")
        with pytest.raises(ZconsoleError, match="running already"):
            job_store.JobLock(record)
        asked.append(plan.directories[0].files)

    settings = Settings((str(tree),), allow_non_zfs=True)
    record = control.create(settings, FactsReader(), agreed=False, ask=ask).record
    assert asked == [1]
    assert [found.record for found in control.resumable()] == [record]


def test_a_no_leaves_nothing(tree: Path) -> None:
    def ask(_plan: RebalancePlan) -> None:
        raise ZconsoleError("nothing was done")

    with pytest.raises(ZconsoleError, match="nothing was done"):
        control.create(
            Settings((str(tree),), allow_non_zfs=True), FactsReader(), agreed=False, ask=ask
        )
    assert list((tree.parent / "state/rebalance").iterdir()) == []


def test_a_death_before_the_answer_leaves_a_job_that_only_its_name_begins(tree: Path) -> None:
    """As a SIGKILL leaves it: a plan, and no lock."""

    def die(_plan: RebalancePlan) -> None:
        for file in (tree.parent / "state/rebalance").iterdir():
            content[file] = file.read_bytes()
        raise KeyboardInterrupt

    content: dict[Path, bytes] = {}
    with pytest.raises(KeyboardInterrupt):
        control.create(
            Settings((str(tree),), allow_non_zfs=True), FactsReader(), agreed=False, ask=die
        )
    for file, data in content.items():
        file.write_bytes(data)
    (left,) = control.listed()
    assert (left.state, left.agreed) == ("planned", False)
    assert control.resumable() == []


def test_a_job_whose_directory_is_gone_says_so_when_it_is_resumed(tree: Path) -> None:
    record, other = created(tree, "running"), created(tree, "running")
    shell = Shell(tree.parent)
    tree.rename(tree.with_name("elsewhere"))
    for _ in range(2):  # what the first one said is in the log
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

    def late(record: Record, show: Show, held: TreeLocks | None = None) -> tuple[int, bool]:
        with pytest.raises(BusyTreeError):
            control.create(Settings((str(tree),), allow_non_zfs=True), FactsReader())
        done = real(record, show, held)
        ran.append(record.job)
        return done

    real = execute.execute
    monkeypatch.setattr(execute, "execute", late)
    assert main(["rebalance", "run", "--yes", "--allow-non-zfs", str(tree)]) == ExitCode.OK
    assert [status.record.job for status in control.listed()] == ran
    TreeLocks(Sys(), [os.fsencode(tree)]).close()  # and the locks end with the job


def test_a_tree_that_a_link_leads_elsewhere_to_since_is_locked_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    held = TreeLocks(Sys(), [os.fsencode(tmp_path / "old")])
    locks = execute._locked(Sys(), [os.fsencode(tmp_path / "new")], held)
    with pytest.raises(BusyTreeError):
        TreeLocks(Sys(), [os.fsencode(tmp_path / "new")])
    locks.close()
    TreeLocks(Sys(), [os.fsencode(tmp_path / "old")]).close()


@pytest.mark.parametrize("beside", ["record", "journal"])
def test_a_job_that_could_still_say_why_it_died_is_heard(tree: Path, beside: str) -> None:
    record = created(tree, "running")
    log = record.log if beside == "record" else record.journal.with_suffix(".log")
    full = "the job's journal: database or disk is full"
    log.write_text(f"job {record.job}\nzconsole: {full}\n")
    assert control.status(record).why == f"{full}; resume it"
    log.write_text("zconsole: of before\nskipped: /tree/file: changed\n")
    assert control.status(record).why == "its process is gone; resume it"


def test_what_a_job_said_before_it_was_resumed_is_not_why_it_died(tree: Path) -> None:
    record = created(tree, "running")
    record.log.write_text("zconsole: of before\n")
    os.utime(record.log, (1000.0, 1000.0))
    with closing(Journal.open(record.journal)) as journal:
        journal.set("status", {"state": "running", "why": None, "t": 2000.0})
    assert control.status(record).why == "its process is gone; resume it"
