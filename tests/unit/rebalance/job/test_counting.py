"""Orders to a job that still counts its files, and what becomes of one that dies meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.test_rebalance import Shell
from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.job import control, job_store
from zconsole.rebalance.job.counting import WALKING
from zconsole.rebalance.job.job import JobClocks
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.settings import Settings

FILES = 20


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


def create(tree: Path, clocks: JobClocks, agreed: bool = True) -> control.Created:
    settings = Settings((str(tree),), allow_non_zfs=True)
    return control.create(settings, FactsReader(), agreed=agreed, clocks=clocks)


def test_a_stop_while_it_counts_ends_it_and_a_resume_counts_again(tree: Path) -> None:
    with pytest.raises(StopJobError):
        create(tree, meanwhile(lambda record: control.steer(record, "stop")))
    (stopped,) = control.listed()
    assert (stopped.state, stopped.why) == ("stopped", "stop")
    assert stopped.settings.dirs == (str(tree),)
    assert not control.is_counted(stopped.record)
    control.recount(stopped.record, FactsReader())
    (counted,) = control.listed()
    assert counted.state == "planned"
    assert counted.record == stopped.record


def test_a_pause_while_it_counts_holds_it_until_it_is_resumed(tree: Path) -> None:
    seen = []

    def pause(record: job_store.Record) -> None:
        control.steer(record, "pause")

    def sleep(_seconds: float) -> None:
        (status,) = control.listed()
        seen.append((status.state, status.why))
        if len(seen) == 3:
            control.resume(status.record)

    clocks = JobClocks(monotonic=meanwhile(pause).monotonic, sleep=sleep)
    created = create(tree, clocks)
    assert seen == [("paused", "paused")] * 3
    assert created.plan.directories[0].files == FILES
    assert control.status(created.record).state == "planned"


def test_a_job_that_counts_says_so_and_takes_new_limits(tree: Path) -> None:
    said = []

    def change(record: job_store.Record) -> None:
        said.append(control.status(record))
        control.steer(record, None, {"rate": 1e6})

    create(tree, meanwhile(change))
    assert (said[0].state, said[0].why) == ("running", WALKING)
    (status,) = control.listed()
    assert status.state == "planned"


def test_a_stop_of_a_job_nobody_agreed_to_leaves_nothing(tree: Path) -> None:
    with pytest.raises(StopJobError):
        create(tree, meanwhile(lambda record: control.steer(record, "stop")), agreed=False)
    assert control.listed() == []
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
    assert control.listed() == []
    for file, data in content.items():
        file.write_bytes(data)
    (dead,) = control.listed()
    assert dead.state == "dead"
    assert control.resumable() == [dead]
    shell = Shell(tree.parent)
    assert shell("resume", "--all").returncode == 0
    assert shell.wait(lambda status: status["state"] == "finished")["files_done"] == FILES


def test_an_order_of_before_does_not_hold_the_next_run(tree: Path) -> None:
    created = create(tree, JobClocks())
    shell = Shell(tree.parent)
    journal = created.record.journal
    control._write_control(created.record, "stop", None)
    assert shell("run", "--yes", "--journal", journal).returncode == 0
    assert shell.status()["state"] == "stopped"
    done = shell("run", "--yes", "--json", "--journal", journal)
    assert json.loads(done.stdout.splitlines()[-1])["summary"]["files_moved"] == FILES
