from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.faults.harness import create
from tests.table import rows
from zconsole.errors import ZconsoleError
from zconsole.rebalance.engine.file_locks import Alarm
from zconsole.rebalance.job.job import Job
from zconsole.rebalance.job.job_store import by_journal
from zconsole.rebalance.job.runner import STOPPING, _signals, execute
from zconsole.rebalance.planning import plan
from zconsole.system.mounts import MountPoint


def test_a_late_word_of_a_broken_lease_does_not_end_the_process() -> None:
    alarm, job = Alarm(), cast("Job", SimpleNamespace(stop=None))
    before = {number: signal.getsignal(number) for number in (signal.SIGIO, signal.SIGTERM)}
    try:
        with _signals(job, alarm):
            os.kill(os.getpid(), signal.SIGIO)
            assert alarm.raised
        os.kill(os.getpid(), signal.SIGIO)
        assert signal.getsignal(signal.SIGTERM) == before[signal.SIGTERM]
    finally:
        signal.signal(signal.SIGIO, before[signal.SIGIO])


@rows("number", STOPPING)
def test_a_signal_ends_the_job_unless_it_was_ignored_from_the_start(number: signal.Signals) -> None:
    alarm, job = Alarm(), cast("Job", SimpleNamespace(stop=None))
    before = {each: signal.getsignal(each) for each in (number, signal.SIGIO)}
    try:
        signal.signal(number, signal.SIG_IGN)  # as nohup does
        with _signals(job, alarm):
            os.kill(os.getpid(), number)
            assert job.stop is None
        signal.signal(number, signal.SIG_DFL)
        with _signals(job, alarm):
            os.kill(os.getpid(), number)
            assert job.stop == STOPPING[number]
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def test_what_has_become_read_only_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    (tmp_path / "tree").mkdir()
    create(tmp_path / "tree", tmp_path / "job.db")
    record = by_journal(tmp_path / "job.db")
    assert record is not None
    read_only = MountPoint(1, 0, b"", b"/", b"/", b"ext4", b"", b"/dev/sda1", read_only=True)
    monkeypatch.setattr(plan.facts, "mount_of", lambda number: read_only)
    with pytest.raises(ZconsoleError, match="tree: mounted read-only"):
        execute(record, lambda records: None)
