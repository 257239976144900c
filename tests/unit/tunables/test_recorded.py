"""Every write to the kernel is in the audit log, with what was there before."""

from __future__ import annotations

import json

import pytest

from tests.unit.tunables.conftest import Kernel
from tests.unit.tunables.test_guard import NAME as FROZEN
from tests.unit.tunables.test_guard import freeze, soon
from zconsole.errors import ZconsoleError
from zconsole.system.audit import AuditError, MemoryLog
from zconsole.system.state_dir import StateError
from zconsole.tunables.control import Control
from zconsole.tunables.parameters import SysfsParameters
from zconsole.tunables.store import FileTunableStore

TIME, SCRUB = "zfs_resilver_min_time_ms", "zfs_scrub_min_time_ms"


class Unwritable(MemoryLog):
    """Neither file nor system log."""

    def write(self, t, event, **fields):
        raise AuditError("audit log not writable")


def told(kernel: Kernel) -> list[tuple[str, str, list[tuple[str, int, int]]]]:
    return [
        (
            line["event"],
            line["action"],
            [(value["name"], value["old"], value["new"]) for value in line["values"]],
        )
        for line in kernel.log.records
    ]


def test_a_write_is_told_before_and_after_with_old_and_new(kernel, monkeypatch):
    known = []

    def write(_parameters, name, value):
        known.append([line["event"] for line in kernel.log.records])
        kernel.write(name, value)

    monkeypatch.setattr(SysfsParameters, "write", write)
    console = kernel.console()
    console.set({TIME: 5000, SCRUB: 1000}, 1.0)
    console.set({TIME: 6000}, 2.0, action="preset faster-resilver")
    console.restore(3.0)
    assert told(kernel) == [
        ("begun", "set", [(TIME, 3000, 5000)]),
        ("ended", "set", [(TIME, 3000, 5000)]),
        ("begun", "preset faster-resilver", [(TIME, 5000, 6000)]),
        ("ended", "preset faster-resilver", [(TIME, 5000, 6000)]),
        ("begun", "restore", [(TIME, 6000, 3000)]),
        ("ended", "restore", [(TIME, 6000, 3000)]),
    ]
    assert [seen[-1] for seen in known] == ["begun"] * 3
    assert [line["kind"] for line in kernel.log.records] == ["tunable"] * 6


def test_what_changes_nothing_is_not_told(kernel):
    kernel.console().set({TIME: 3000}, 1.0)
    kernel.console().restore(2.0)
    assert kernel.log.records == []


def test_a_write_that_the_kernel_refuses_is_told_as_failed(kernel, monkeypatch):
    def write(_parameters, name, value):
        if name == SCRUB:
            raise ZconsoleError("refused")
        kernel.write(name, value)

    monkeypatch.setattr(SysfsParameters, "write", write)
    with pytest.raises(ZconsoleError):
        kernel.console().set({TIME: 5000, SCRUB: 2000}, 1.0)
    begun, ended = kernel.log.records
    assert (begun["event"], ended["event"]) == ("begun", "ended")
    assert (ended["ok"], ended["result"]) == (False, "failed: refused")
    assert [value["name"] for value in ended["values"]] == [TIME]


def test_nothing_is_set_without_a_line_in_some_log_and_everything_is_put_back(kernel):
    kernel.console().set({TIME: 5000}, 1.0)
    blind = Control(kernel.parameters, FileTunableStore(kernel.state), Unwritable())
    with pytest.raises(AuditError):
        blind.set({SCRUB: 2000}, 2.0)
    assert kernel.read(SCRUB) == 1000
    assert [entry.put_back for entry in blind.restore(3.0)] == [True]
    assert kernel.read(TIME) == 3000


def test_values_are_put_back_where_nothing_can_be_written(kernel):
    """A full or read-only disk: what was set is known, but can't be forgotten."""
    kernel.console().set({TIME: 5000}, 1.0)

    def read_only() -> None:
        raise StateError("Read-only file system")

    stuck = Control(kernel.parameters, FileTunableStore(kernel.state, read_only), Unwritable())
    with pytest.raises(ZconsoleError):
        stuck.set({SCRUB: 2000}, 2.0)
    assert [entry.put_back for entry in stuck.restore(3.0)] == [True]
    assert kernel.read(TIME) == 3000


def test_values_that_cannot_be_forgotten_were_put_back_all_the_same(kernel, monkeypatch):
    kernel.console().set({TIME: 5000}, 1.0)

    def full(_path, _data):
        raise StateError("No space left on device")

    monkeypatch.setattr("zconsole.tunables.store.write_private", full)
    assert [entry.put_back for entry in kernel.console().restore(2.0)] == [True]
    assert kernel.read(TIME) == 3000


async def test_the_guard_tells_what_it_sets_and_puts_back(kernel):
    kernel.state.chmod(0o700)
    await freeze(kernel, seconds=0.3)
    assert soon(lambda: kernel.read(FROZEN) == 0)
    file = kernel.state / "audit.jsonl"
    assert soon(lambda: len(file.read_text().splitlines()) >= 4)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["event"], line["action"]) for line in lines] == [
        ("begun", "set"),
        ("ended", "set"),
        ("begun", "restore"),
        ("ended", "restore"),
    ]
    assert lines[2]["values"] == [{"name": FROZEN, "old": 1, "new": 0}]
