"""What is ordered of jobs is in the audit log, before and after."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.test_rebalance import Shell
from zconsole.errors import ZconsoleError
from zconsole.rebalance.job import audited
from zconsole.rebalance.job.audited import AuditedJobs
from zconsole.rebalance.job.job_store import Record
from zconsole.system.audit.log import NAME, AuditError, MemoryLog

JOB = Record("abc123", Path("/nowhere/abc123.db"), Path("/nowhere/abc123.json"))


class Unwritable(MemoryLog):
    """Neither file nor system log."""

    def write(self, t: float, event: str, **fields: Any) -> None:
        raise AuditError("audit log not writable")


class Orders:
    """Takes the place of the jobs; ``log`` is what was told when an order came."""

    def __init__(self, log: MemoryLog) -> None:
        self.given: list[tuple[Any, ...]] = []
        self.told: list[list[str]] = []
        self._log = log

    def steer(self, record: Record, *order: Any) -> None:
        self.told.append([line["event"] for line in self._log.records])
        self.given.append(order)
        if order[0] == "stop":
            raise ZconsoleError("job abc123 does not run")

    def resume(self, record: Record, limits: Any = None) -> None:
        self.steer(record, "resume", limits)

    def start(self, record: Record) -> None:
        self.steer(record, "start")


def made(monkeypatch: pytest.MonkeyPatch, log: MemoryLog) -> tuple[AuditedJobs, Orders]:
    orders = Orders(log)
    for name in ("steer", "resume", "start"):
        monkeypatch.setattr(audited.control, name, getattr(orders, name))
    return AuditedJobs(log, ("zconsole", "rebalance"), lambda: 5.0), orders


def test_each_order_is_told_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    jobs, orders = made(monkeypatch, log)
    jobs.steer(JOB, "pause")
    jobs.steer(JOB, "run")
    jobs.steer(JOB, None, {"rate": 1e6})
    jobs.resume(JOB, {"max_bytes": 7})
    jobs.start(JOB)
    with pytest.raises(ZconsoleError):
        jobs.steer(JOB, "stop")
    begun, ended = log.records[::2], log.records[1::2]
    actions = ["pause", "resume", "limits", "resume", "start", "stop"]
    assert [line["action"] for line in begun] == [line["action"] for line in ended] == actions
    assert [line["ok"] for line in ended] == [True] * 5 + [False]
    assert ended[-1]["result"] == "failed: job abc123 does not run"
    assert {(line["kind"], line["job"]) for line in log.records} == {("job", "abc123")}
    assert [line["limits"] for line in begun][2:4] == [{"rate": 1e6}, {"max_bytes": 7}]
    assert all(told[-1] == "begun" for told in orders.told)


def test_without_a_log_jobs_are_paused_and_stopped_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs, orders = made(monkeypatch, Unwritable())
    jobs.steer(JOB, "pause")
    with pytest.raises(ZconsoleError, match="does not run"):
        jobs.steer(JOB, "stop")
    for order in (
        lambda: jobs.steer(JOB, "run"),
        lambda: jobs.steer(JOB, None, {"rate": 1e6}),
        lambda: jobs.steer(JOB, "pause", {"rate": 1e6}),
        lambda: jobs.resume(JOB),
        lambda: jobs.start(JOB),
    ):
        with pytest.raises(AuditError):
            order()
    assert orders.given == [("pause", None), ("stop", None)]


def lines(shell: Shell) -> list[dict[str, Any]]:
    text = (shell.area / "state" / NAME).read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_job_is_told_with_its_settings_and_its_end(tmp_path: Path) -> None:
    shell, tree = Shell(tmp_path), tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_bytes(b"x" * 1000)
    ran = shell("run", "--yes", "--allow-non-zfs", "--max-bytes=9000000", tree)
    assert ran.returncode == 0, ran.stderr
    begun, ended = lines(shell)
    assert (begun["event"], begun["kind"], begun["action"]) == ("begun", "job", "run")
    assert begun["settings"]["dirs"] == [str(tree)]
    assert begun["limits"]["max_bytes"] == 9_000_000
    assert "--allow-non-zfs" in begun["argv"]
    assert (ended["event"], ended["ok"], ended["job"]) == ("ended", True, begun["job"])
    assert shell("stop", begun["job"]).returncode == 1
    assert [line["action"] for line in lines(shell)[2:]] == ["stop", "stop"]
    assert lines(shell)[-1]["ok"] is False


def test_no_file_is_moved_without_a_line_in_some_log(tmp_path: Path) -> None:
    shell, tree = Shell(tmp_path), tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_bytes(b"x" * 1000)
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / NAME).mkdir()
    if Path("/dev/log").exists():
        pytest.skip("this machine's system log takes the lines")
    before = (tree / "file").stat()
    ran = shell("run", "--yes", "--allow-non-zfs", tree)
    assert ran.returncode == 1
    assert "audit log not writable" in ran.stderr
    assert (tree / "file").stat() == before
