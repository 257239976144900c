from __future__ import annotations

import os

import pytest

from zconsole.actions.backend import live_backend
from zconsole.errors import ZconsoleError
from zconsole.sim.backends.actions import simulated_backend
from zconsole.sim.source import World
from zconsole.sim.state import defaults


def test_a_read_only_kit_says_so_and_makes_no_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    assert live_backend(read_only=True).denied == "read-only"
    assert not (tmp_path / "state").exists()


def test_without_privilege_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert live_backend(read_only=False).denied == "not root"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may act")
def test_a_directory_that_cannot_be_used_keeps_nobody_from_acting_but_is_not_written(
    tmp_path, monkeypatch
):
    """It may be on a suspended pool: the log is kept elsewhere, and tunables are not set."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "link"))
    backend = live_backend(read_only=False)
    assert backend.denied == ""
    backend.log.note(1.0, "begun")
    with pytest.raises(ZconsoleError):
        backend.control.set({"zfs_resilver_min_time_ms": 5000}, 1.0)
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_a_simulated_kit_knows_its_machine_and_reaches_no_further():
    world = World("failed-disk", 1)
    backend = simulated_backend(world)
    backend.control.set({"zfs_scan_vdev_limit": 64 << 20}, 1.0)
    assert world.pools[0].tunables["zfs_scan_vdev_limit"] == 64 << 20
    await backend.freeze("zfs_scan_suspend_progress", 1)
    assert world.pools[0].tunables["zfs_scan_suspend_progress"] == 1
    backend.control.restore(2.0)
    assert world.pools[0].tunables == defaults("2.3.9")
    with pytest.raises(ZconsoleError, match="refused"):
        backend.parameters.write("zfs_nonsense", 1)
    with pytest.raises(FileNotFoundError):
        await backend.runner.run(("smartctl", "-j"), 1.0)
