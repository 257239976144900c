"""Counting the files of a new job, and what prevents it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.table import rows
from tests.unit.cli.test_rebalance import Shell
from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.engine.journal import Intent, Journal, State
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.job import control, creation, job_store
from zconsole.rebalance.job.creation import how_it_differs, is_same_filesystem
from zconsole.rebalance.job.job import WALKING
from zconsole.rebalance.job.locks import BusyTreeError, conflicting_job
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.settings import Settings
from zconsole.system.audit import MemoryLog

pytestmark = pytest.mark.slow

FILES = 20
LOG = MemoryLog()
TEMP = b".zc-0123456789abcdef-1"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    for number in range(FILES):
        (tmp_path / f"tree/d{number}").mkdir(parents=True)
        (tmp_path / f"tree/d{number}/f").write_bytes(b"x")
    return tmp_path / "tree"


def meanwhile(confirmation: Callable[[job_store.Record], None]) -> JobClocks:
    """Return clocks that call something once while the files are counted."""
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(creation, "JobClocks", lambda: clocks)
        return planned(tree, agreed=agreed)


def test_a_stop_while_it_counts_ends_it_and_a_resume_counts_again(tree: Path) -> None:
    with pytest.raises(StopJobError):
        create(tree, meanwhile(lambda record: control.steer(LOG, record, "stop")))
    (stopped,) = control.list_jobs([])
    assert (stopped.state, stopped.why) == ("stopped", "stop")
    assert stopped.settings.dirs == (str(tree),)
    control.run_again(job_store.find(stopped.job), {})
    assert creation.recount(job_store.find(stopped.job), FactsReader()) is not None
    assert creation.recount(job_store.find(stopped.job), FactsReader()) is None
    (counted,) = control.list_jobs([])
    assert counted.state == "planned"
    assert job_store.find(counted.job) == job_store.find(stopped.job)


def test_a_pause_while_it_counts_holds_it_until_it_is_resumed(tree: Path) -> None:
    seen = []

    def pause(record: job_store.Record) -> None:
        control.steer(LOG, record, "pause")

    def sleep(_seconds: float) -> None:
        (status,) = control.list_jobs([])
        seen.append((status.state, status.why))
        if len(seen) == 3:
            control.resume(LOG, job_store.find(status.job))

    clocks = JobClocks(monotonic=meanwhile(pause).monotonic, sleep=sleep)
    created = create(tree, clocks)
    assert seen == [("paused", "paused")] * 3
    assert created.plan.directories[0].files == FILES
    assert control.status(created.record).state == "planned"


def test_a_job_that_counts_says_so_and_takes_new_limits(tree: Path) -> None:
    said = []

    def change(record: job_store.Record) -> None:
        said.append(control.status(record))
        control.steer(LOG, record, None, {"rate": 1e6})

    create(tree, meanwhile(change))
    assert (said[0].state, said[0].why) == ("running", WALKING)
    (status,) = control.list_jobs([])
    assert status.state == "planned"


def test_a_job_never_opens_its_own_journal(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it loses SQLite's locks on it, and whoever asks it something deletes its log."""
    monkeypatch.setenv("ZCONSOLE_STATE", str(tree / "state"))
    for made in (planned(tree), planned(tree, journal_path=tree / "d1/named.db")):
        with closing(Journal.open(made.record.journal)) as journal:
            rows = [row.name for _, row in journal.todo((-1, -1, -1), 100)]
        assert rows == [b"f"] * FILES
        assert made.plan.document.directories[0].skipped["zconsole's own"] >= 1


def test_a_stop_of_a_job_nobody_agreed_to_leaves_nothing(tree: Path) -> None:
    with pytest.raises(StopJobError):
        create(tree, meanwhile(lambda record: control.steer(LOG, record, "stop")), agreed=False)
    assert control.list_jobs([]) == []
    assert list((tree.parent / "state/rebalance").iterdir()) == []


def test_a_death_while_it_counts_is_not_forgotten(tree: Path) -> None:
    """SIGKILL leaves a journal without an end of its walk, and no lock."""

    def die(record: job_store.Record) -> None:
        content.update({f: f.read_bytes() for f in (record.journal, record.file)})
        content.update({f: f.read_bytes() for f in record.journal.parent.glob("*-wal")})
        raise KeyboardInterrupt

    content: dict[Path, bytes] = {}
    with pytest.raises(KeyboardInterrupt):
        create(tree, meanwhile(die))
    assert control.list_jobs([]) == []
    for file, data in content.items():
        file.write_bytes(data)
    (dead,) = control.list_jobs([])
    assert dead.state == "dead"
    assert control.resumable([]) == [job_store.find(dead.job)]
    shell = Shell(tree.parent)
    assert shell("resume", "--all").returncode == 0
    assert shell.wait(lambda status: status["state"] == "finished")["files_done"] == FILES


def test_an_order_of_before_does_not_hold_the_next_run(tree: Path) -> None:
    created = create(tree, JobClocks())
    shell = Shell(tree.parent)
    journal = created.record.journal
    control.ask(created.record, "stop")
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


def planned(root: Path, **words: Any) -> creation.Created:
    return creation.create(Settings((str(root),), allow_non_zfs=True), FactsReader(), **words)


def died(root: Path, state: State) -> creation.Created:
    """Create a job that died in the middle of its first file."""
    created = planned(root)
    journal = Journal.open(created.record.journal)
    ((_, row),) = journal.todo((-1, -1, -1), 1)
    journal.record((), [Intent(row.number, state, TEMP, row.ino, row.ino + 1, b"digest")])
    journal.set("status", {"state": "running"})
    journal.close()
    return created


@pytest.mark.parametrize("state", [State.CREATING, State.SWAPPING])
def test_it_is_refused_in_below_and_above(small: Path, state: State) -> None:
    dead = died(small, state).record
    for root in (small, small / "below", small.parent):
        with pytest.raises(BusyTreeError, match=f"resume {dead.job}"):
            planned(root)
    assert [job_store.find(found.job) for found in control.list_jobs([])] == [dead]


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


def test_a_plan_tells_of_it(small: Path) -> None:
    dead = died(small, State.SWAPPING).record
    said = conflicting_job([os.fsencode(small / "below")])
    assert said is not None
    assert said.startswith(f"job {dead.job} was interrupted in {small}: let it go on first")
    (beside := small.with_name("beside")).mkdir()
    assert conflicting_job([os.fsencode(beside)]) is None


@pytest.mark.parametrize(
    ("state", "name", "since"),
    [
        (State.SWAPPING, "tree-beside", ""),
        (State.PENDING, "tree", ""),  # it died between two files
        (State.SWAPPING, "tree", "replaced"),
        (State.SWAPPING, "tree", "journal damaged"),
    ],
)
def test_one_begins_that_no_unfinished_work_is_in_the_way_of(
    small: Path, state: State, name: str, since: str
) -> None:
    dead = died(small, state).record
    if since == "replaced":
        small.rename(small.with_name("elsewhere"))
        shutil.copytree(small.with_name("elsewhere"), small)
    elif since:
        dead.journal.write_bytes(b"damaged" * 1000)
    assert planned(small.with_name(name)).plan.directories[0].files == 1


BY_HAND = ("run", "--yes", "--journal")


@pytest.mark.parametrize("by_hand", [False, True])
def test_another_directory_is_refused_in_words(small: Path, by_hand: bool) -> None:
    dead, shell = died(small, State.SWAPPING).record, Shell(small.parent)
    small.rename(small.with_name("renamed"))
    small.mkdir()
    done = shell(*BY_HAND, dead.journal) if by_hand else shell("resume", dead.job)
    assert done.returncode == 1
    refused = f"{small} is another directory than the one that was walked. To give up"
    assert refused in done.stderr
    assert shell.status(dead.job)["why"].startswith(refused)


@pytest.mark.parametrize("counting", [False, True])
def test_a_refusal_by_hand_is_why_the_job_is_dead(small: Path, counting: bool) -> None:
    """The job had its plan, or was still counting its files."""
    dead, shell = died(small, State.SWAPPING).record, Shell(small.parent)
    if counting:
        with closing(sqlite3.connect(dead.journal)) as db, db:
            db.execute("DELETE FROM meta WHERE key IN ('job', 'status')")
    small.rename(small.with_name("elsewhere"))
    done = shell(*BY_HAND, dead.journal)
    assert done.returncode == 3
    refused = done.stderr.splitlines()[-1].removeprefix("zconsole: ")
    assert str(small) in refused
    assert shell.status(dead.job)["why"] == f"{refused}; resume it"


def test_options_that_are_not_the_jobs_are_no_word_about_it(small: Path) -> None:
    dead, shell = died(small, State.SWAPPING).record, Shell(small.parent)
    assert shell(*BY_HAND, dead.journal, "--aim", "age", small).returncode == 2
    assert shell.status(dead.job)["why"] == "its process is gone; resume it"


@rows(
    ("before", "told"),
    [
        ("zfs:tank/data:17", "made anew"),  # another one has the name now
        ("ext4:/dev/sdx1:", "not /dev/sdx1 (ext4)"),
        ("nfs4:host:/data:", "not host:/data (nfs4)"),
        ("", "not an unknown one"),
    ],
)
def test_a_filesystem_is_named_as_it_was(before: str, told: str) -> None:
    now = "is on another filesystem now: tank/data (zfs)"
    assert how_it_differs(before, "zfs:tank/data:18") == f"{now}, {told}"


@rows(
    ("before", "now", "same"),
    [
        ("zfs:tank/data:17", "zfs:tank/data:17", True),
        ("zfs:tank/data:17", "zfs:tank/renamed:17", True),
        ("zfs:tank/data:17", "zfs:tank/data:18", False),
        ("zfs:tank/data:", "zfs:tank/other:", False),
        ("ext4:/dev/sda1:", "ext4:/dev/sda1:", True),
        ("ext4:/dev/sda1:", "ext4:/dev/sdb1:", False),
        ("", "zfs:tank/data:17", False),
    ],
)
def test_a_renamed_dataset_is_the_same(before: str, now: str, same: bool) -> None:
    assert is_same_filesystem(before, now) is same
