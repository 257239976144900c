from __future__ import annotations

import os

import pytest

from zconsole.actions.kit import live_kit
from zconsole.actions.simulated import simulated_kit
from zconsole.errors import ZconsoleError
from zconsole.sim.source import World
from zconsole.tunables.tunable import MIB


def test_a_read_only_kit_says_so_and_makes_no_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    assert live_kit(read_only=True).denied == "read-only"
    assert not (tmp_path / "state").exists()


def test_without_privilege_or_a_private_directory_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert live_kit(read_only=False).denied == "not root"
    monkeypatch.undo()


async def test_a_simulated_kit_knows_its_machine_and_reaches_no_further():
    world = World("failed-disk", 1)
    kit = simulated_kit(world)
    kit.control.set({"zfs_scan_vdev_limit": 64 * MIB}, 1.0)
    assert world.tunables()["zfs_scan_vdev_limit"] == 64 * MIB
    await kit.freeze("zfs_scan_suspend_progress", 1)
    assert world.tunables()["zfs_scan_suspend_progress"] == 1
    kit.control.restore(2.0)
    assert world.tunables() == world.defaults()
    with pytest.raises(ZconsoleError, match="refused"):
        kit.parameters.write("zfs_nonsense", 1)
    with pytest.raises(FileNotFoundError):
        await kit.runner.run(("smartctl", "-j"), 1.0)
