"""Counting the files of a new job, and what is in its way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.test_rebalance import Shell
from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.engine.journal import Intent, Journal, State
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.job import control, creation, job_store
from zconsole.rebalance.job.control import AuditedJobs
from zconsole.rebalance.job.job import WALKING
from zconsole.rebalance.job.locks import BusyTreeError
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.settings import Settings
from zconsole.system.audit import MemoryLog

pytestmark = pytest.mark.slow

FILES = 20
ORDERS = AuditedJobs(MemoryLog())
TEMP = b".zc-0123456789abcdef-1"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    for number in range(FILES):
        (tmp_path / f"tree/d{number}").mkdir(parents=True)
        (tmp_path / f"tree/d{number}/f").write_bytes(b"x")
    return tmp_path / "tree"


def meanwhile(confirmation: Callable[[job_store.Record], None]) -> JobClocks:
    """Clocks that do something once while the files are counted."""
    time, done = 0.0, False

    def clock() -> float:
        nonlocal time, done
        time += 1.0
        if time > FILES / 2 and not done:
            done = True
            confirmation(next(job_store.records()))
        return time

    return JobClocks(monotonic=clock, sleep=lambda seconds: None)


def create(tree: Path, clocks: JobClocks, agreed: bool = True) -> creation.Created:
    settings = Settings((str(tree),), allow_non_zfs=True)
    return creation.create(settings, FactsReader(), agreed=agreed, clocks=clocks)


def test_a_stop_while_it_counts_ends_it_and_a_resume_counts_again(tree: Path) -> None:
    with pytest.raises(StopJobError):
        create(tree, meanwhile(lambda record: ORDERS.steer(record, "stop")))
    (stopped,) = control.listed([])
    assert (stopped.state, stopped.why) == ("stopped", "stop")
    assert stopped.settings.dirs == (str(tree),)
    assert creation.recount(job_store.find(stopped.job), FactsReader()) is not None
    assert creation.recount(job_store.find(stopped.job), FactsReader()) is None
    (counted,) = control.listed([])
    assert counted.state == "planned"
    assert job_store.find(counted.job) == job_store.find(stopped.job)


def test_a_pause_while_it_counts_holds_it_until_it_is_resumed(tree: Path) -> None:
    seen = []

    def pause(record: job_store.Record) -> None:
        ORDERS.steer(record, "pause")

    def sleep(_seconds: float) -> None:
        (status,) = control.listed([])
        seen.append((status.state, status.why))
        if len(seen) == 3:
            ORDERS.resume(job_store.find(status.job))

    clocks = JobClocks(monotonic=meanwhile(pause).monotonic, sleep=sleep)
    created = create(tree, clocks)
    assert seen == [("paused", "paused")] * 3
    assert created.plan.directories[0].files == FILES
    assert control.status(created.record).state == "planned"


def test_a_job_that_counts_says_so_and_takes_new_limits(tree: Path) -> None:
    said = []

    def change(record: job_store.Record) -> None:
        said.append(control.status(record))
        ORDERS.steer(record, None, {"rate": 1e6})

    create(tree, meanwhile(change))
    assert (said[0].state, said[0].why) == ("running", WALKING)
    (status,) = control.listed([])
    assert status.state == "planned"


def test_a_stop_of_a_job_nobody_agreed_to_leaves_nothing(tree: Path) -> None:
    with pytest.raises(StopJobError):
        create(tree, meanwhile(lambda record: ORDERS.steer(record, "stop")), agreed=False)
    assert control.listed([]) == []
    assert list((tree.parent / "state/rebalance").iterdir()) == []


def test_a_death_while_it_counts_is_not_forgotten(tree: Path) -> None:
    """As a SIGKILL leaves it: a journal without an end of its walk, and no lock."""

    def die(record: job_store.Record) -> None:
        content.update({f: f.read_bytes() for f in (record.journal, record.file)})
        content.update({f: f.read_bytes() for f in record.journal.parent.glob("*-wal")})
        raise KeyboardInterrupt

    content: dict[Path, bytes] = {}
    with pytest.raises(KeyboardInterrupt):
        create(tree, meanwhile(die))
    assert control.listed([]) == []
    for file, data in content.items():
        file.write_bytes(data)
    (dead,) = control.listed([])
    assert dead.state == "dead"
    assert control.resumable([]) == [job_store.find(dead.job)]
    shell = Shell(tree.parent)
    assert shell("resume", "--all").returncode == 0
    assert shell.wait(lambda status: status["state"] == "finished")["files_done"] == FILES


@pytest.mark.slow
def test_an_order_of_before_does_not_hold_the_next_run(tree: Path) -> None:
    created = create(tree, JobClocks())
    shell = Shell(tree.parent)
    journal = created.record.journal
    control._write_control(created.record, "stop", None)
    assert shell("run", "--yes", "--journal", journal).returncode == 0
    assert shell.status()["state"] == "stopped"
    done = shell("run", "--yes", "--json", "--journal", journal)
    assert json.loads(done.stdout.splitlines()[-1])["summary"]["files_moved"] == FILES


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    for name in ("tree/below", "tree-beside"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_bytes(b"x")
    return tmp_path / "tree"


def planned(root: Path) -> creation.Created:
    return creation.create(Settings((str(root),), allow_non_zfs=True), FactsReader())


def died(root: Path, state: State) -> creation.Created:
    """A job that a death took in the middle of its first file."""
    created = planned(root)
    journal = Journal.open(created.record.journal)
    ((_, row),) = journal.todo((-1, -1, -1), 1)
    journal.record((), [Intent(row.number, state, TEMP, row.ino, row.ino + 1, b"digest")])
    journal.set("status", {"state": "running"})
    journal.close()
    return created


@pytest.mark.slow
@pytest.mark.parametrize("state", [State.CREATING, State.SWAPPING])
def test_it_is_refused_in_below_and_above(small: Path, state: State) -> None:
    dead = died(small, state).record
    for root in (small, small / "below", small.parent):
        with pytest.raises(BusyTreeError, match=f"resume {dead.job}"):
            planned(root)
    assert [job_store.find(found.job) for found in control.listed([])] == [dead]


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs mounts")
def test_it_is_refused_through_a_bind_mount(small: Path) -> None:
    dead = died(small, State.SWAPPING).record
    seen = small.with_name("seen")
    seen.mkdir()
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    run = [sys.executable, "-m", "zconsole", "rebalance", "run", "--yes", "--allow-non-zfs"]
    argv = ["unshare", "-m", "sh", "-c", script, "sh", str(small / "below"), str(seen)]
    done = subprocess.run([*argv, *run, str(seen)], capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 1
    assert f"job {dead.job} was interrupted in {small}: let it go on first" in done.stderr


def test_one_beside_it_begins(small: Path) -> None:
    died(small, State.SWAPPING)
    assert planned(small.with_name("tree-beside")).plan.directories[0].files == 1


def test_a_job_that_died_between_two_files_is_not_in_the_way(small: Path) -> None:
    died(small, State.PENDING)
    assert planned(small).plan.directories[0].files == 1


def test_nor_is_one_whose_tree_has_been_replaced(small: Path) -> None:
    died(small, State.SWAPPING)
    small.rename(small.with_name("elsewhere"))
    shutil.copytree(small.with_name("elsewhere"), small)
    assert planned(small).plan.directories[0].files == 1


def test_nor_one_whose_journal_is_damaged(small: Path) -> None:
    died(small, State.SWAPPING).record.journal.write_bytes(b"damaged" * 1000)
    assert planned(small).plan.directories[0].files == 1
