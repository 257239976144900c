"""Jobs of several directories, one of which is gone when the job is resumed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import ALONE, FaultySys, Killed, create, descriptors_closed, run
from zconsole.errors import ZconsoleError
from zconsole.rebalance.backend import JobStatus
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job import creation
from zconsole.rebalance.job.job_store import Record, by_journal
from zconsole.rebalance.job.locks import refuse_interrupted
from zconsole.rebalance.job.runner import execute
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.facts import FactsReader


def _killed(area: Path, exchanges: int) -> Record:
    """Let a job of r1 and r2 die when it had exchanged so many names; return its record."""
    create(area / "r1", area / "job.db", more=[area / "r2"])
    dying = FaultySys()

    def _after(_number: int, name: str, _result: Any) -> None:
        if name == "exchange" and dying.calls.count("exchange") == exchanges:
            dying.die()

    dying.after = _after
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job.db", dying, ALONE)
    record = by_journal(area / "job.db")
    assert record is not None
    return record


MTIME = 1e9
"""Modification time of the directories before the job, epoch seconds."""


@pytest.fixture
def killed(area: Path) -> Record:
    """Return a job of two directories that died when it had exchanged all four names."""
    for root in (area / "r1", area / "r2"):
        root.mkdir()
        for number in range(2):
            (root / f"f{number}").write_bytes(bytes([number]) * 1000)
        os.utime(root, (MTIME, MTIME))
    return _killed(area, 4)


def _resume_without(root: Path, record: Record) -> None:
    """Resume a job while one of its directories is gone, which then comes back."""
    _gone(root)
    with pytest.raises(ZconsoleError, match="No such file"):
        execute(record, lambda _: None)
    root.with_name("elsewhere").rename(root)


def _gone(root: Path) -> None:
    root.rename(root.with_name("elsewhere"))


def _another(root: Path) -> None:
    _gone(root)
    root.mkdir()


def _filesystem(root: Path) -> None:
    _another(root)
    with closing(Journal.open(root.parent / "job.db")) as journal:
        journal.set("keys", {**journal.get("keys", dict), str(root): "zfs:tank/data:366"})


@pytest.mark.parametrize(
    ("lose", "said"),
    [
        (_gone, "No such file or directory"),
        (_another, "is another directory than the one that was walked"),
        (_filesystem, r"is on another filesystem now: .*, not tank/data \(zfs\)"),
    ],
)
def test_it_bars_no_other(
    area: Path, killed: Record, lose: Callable[[Path], None], said: str
) -> None:
    gone = area / "r2"
    with closing(Journal.open(killed.journal)) as journal:
        keys = journal.get("keys")
    lose(gone)
    events = list[JobStatus]()
    with pytest.raises(ZconsoleError, match=f"{gone}:? {said}") as raised:
        execute(killed, events.append)
    assert str(raised.value) in events[-1].notes
    assert sorted(path.name for path in (area / "r1").iterdir()) == ["f0", "f1"]
    assert len(list((area / "elsewhere").iterdir())) == 4
    assert events[-1].summary is not None
    assert (events[-1].summary["files_moved"], events[-1].summary["files_failed"]) == (2, 2)
    with contextlib.suppress(FileNotFoundError):
        gone.rmdir()
    (area / "elsewhere").rename(gone)
    with closing(Journal.open(killed.journal)) as journal:
        journal.set("keys", keys)
    assert execute(killed, events.append) == (0, False)
    for root in (area / "r1", gone):
        found = {path.name: path.read_bytes() for path in root.iterdir()}
        assert found == {"f0": b"\0" * 1000, "f1": b"\1" * 1000}
    assert events[-1].files_done == 4


def test_the_device_number_that_it_had_may_be_anothers_by_now(area: Path, killed: Record) -> None:
    device = area.stat().st_dev
    both = plan.locate([str(area / "r1"), str(area / "r2")], FactsReader())
    with closing(Journal.open(killed.journal)) as journal:
        for root, number in (("r1", 7), ("r2", device)):
            name = bytes(area / root)
            journal._db.execute("UPDATE dirs SET dev = ? WHERE name = ?", (number, name))
        creation.adopt_devices(Sys(), journal, both[:1])
        here, gone = (row.dev for row in journal.roots())
        assert here == device
        assert gone >= creation.GONE
        creation.adopt_devices(Sys(), journal, both)
        assert [row.dev for row in journal.roots()] == [device, device]


@pytest.mark.parametrize("exchanges", [1, 2])
def test_a_file_with_a_name_in_it_stays_one_file(area: Path, exchanges: int) -> None:
    for root in (area / "r1", area / "r2"):
        root.mkdir()
    (area / "r1/f").write_bytes(b"x" * 1000)
    os.link(area / "r1/f", area / "r2/f")
    record = _killed(area, exchanges)
    _resume_without(area / "r2", record)
    assert execute(record, lambda _: None) == (0, False)
    assert (area / "r1/f").samefile(area / "r2/f")
    assert not [*area.glob("r?/.zc*")]


def test_a_power_cut_that_undid_a_name_in_it_divides_no_file(area: Path) -> None:
    for root in (area / "r1", area / "r2"):
        root.mkdir()
    (area / "r1/f").write_bytes(b"x" * 1000)
    os.link(area / "r1/f", area / "r2/f")
    record = _killed(area, 2)
    (original,), (other,) = (list(root.glob(".zc*")) for root in (area / "r1", area / "r2"))
    original.unlink()
    other.rename(area / "r2/f")
    _resume_without(area / "r2", record)
    assert execute(record, lambda _: None) == (0, False)
    assert (area / "r1/f").samefile(area / "r2/f")
    assert not [*area.glob("r?/.zc*")]


def test_it_gets_its_time_once_it_is_back(area: Path, killed: Record) -> None:
    _resume_without(area / "r2", killed)
    execute(killed, lambda _: None)
    assert [(area / root).stat().st_mtime for root in ("r1", "r2")] == [MTIME, MTIME]


def test_no_other_job_begins_in_it(area: Path, killed: Record) -> None:
    _resume_without(area / "r2", killed)
    with pytest.raises(ZconsoleError, match="resume"):
        refuse_interrupted([os.fsencode(area / "r2")])
