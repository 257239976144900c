"""Tunables on a live kernel: defaults, originals, and a freeze that ends with its console."""

from __future__ import annotations

import json

import pytest

from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory
from zconsole.tunables.catalog import BY_NAME, HISTORICAL

PARAMETERS = "/sys/module/zfs/parameters"
TIME = "zfs_resilver_min_time_ms"
FREEZE = "zfs_scan_suspend_progress"
FREEZE_FOR = f"""
import sys
from pathlib import Path
from zconsole.system.host import process_mark
from zconsole.tunables import guard
mark = process_mark(int(sys.argv[1]))
guard.start(Path("/var/lib/zconsole"), guard.GuardOrder("{FREEZE}", 1, 300.0, mark))
"""
"""Freezes scans like the console with this process id."""
SET_AND_DIE = f"""
import os, signal, time
from zconsole.actions.backend import live_backend
live_backend(False).control.set({{"{TIME}": 4000}}, time.time())
os.kill(os.getpid(), signal.SIGKILL)
"""
"""Sets a tunable like a console whose ssh connection then drops."""


def read(vm: Machine, name: str) -> int:
    return int(vm.run(f"cat {PARAMETERS}/{name}").stdout)


def write(vm: Machine, name: str, value: int) -> None:
    vm.run(f"echo {value} > {PARAMETERS}/{name}")


def listed(vm: Machine) -> dict[str, dict]:
    lines = vm.run("zconsole tunables list --json").stdout.splitlines()
    return {(entry := json.loads(line))["name"]: entry for line in lines}


@pytest.fixture
def clean(vm: Machine):
    """A machine without saved state; tunables are restored afterwards."""
    vm.run("rm -rf /var/lib/zconsole")
    before = read(vm, TIME)
    yield vm
    write(vm, TIME, before)
    write(vm, FREEZE, 0)


@pytest.mark.slow
def test_the_registry_knows_this_versions_defaults(clean: Machine):
    found = listed(clean)
    wrong = {
        name: (entry["default"], entry["value"])
        for name, entry in found.items()
        if entry["value"] is not None
        and entry["default"] is not None
        and entry["default"] != entry["value"]
    }
    assert wrong == {}
    assert set(found) >= BY_NAME.keys() - HISTORICAL.keys()
    assert found[TIME]["value"] is not None


def test_set_is_remembered_and_restored(clean: Machine):
    before = read(clean, TIME)
    clean.run(f"zconsole tunables set {TIME}=4000")
    clean.run(f"zconsole tunables set {TIME}=7000")
    assert read(clean, TIME) == 7000
    assert listed(clean)[TIME]["original"] == before
    clean.run("zconsole tunables restore")
    assert read(clean, TIME) == before


def test_somebody_elses_value_stays(clean: Machine):
    clean.run(f"zconsole tunables set {TIME}=4000")
    write(clean, TIME, 4321)
    said = clean.run("zconsole tunables restore").stderr
    assert "somebody else" in said
    assert read(clean, TIME) == 4321


def test_refused_before_the_kernel_sees_it(clean: Machine):
    refused = {
        f"set {TIME}=0": "out of range",
        "set zfs_scrub_delay=0": "zfs_vdev_scrub_max_active",
        "set zfs_no_scrub_io=1": "not written",
        "set zfs_vdev_scrub_min_active=900": "exceed",
    }
    for words, text in refused.items():
        result = clean.run(f"zconsole tunables {words}", check=False)
        assert result.returncode == 2, words
        assert text in result.stderr, words


@pytest.mark.slow
def test_presets_are_taken_by_the_kernel(clean: Machine):
    for name in ("faster-resilver", "gentle", "default"):
        clean.run(f"zconsole tunables preset {name}")
    clean.run("zconsole tunables restore")
    assert all(entry["set_by_us"] is None for entry in listed(clean).values())


@pytest.mark.slow
def test_a_freeze_is_put_back_when_the_console_is_killed(clean: Machine):
    clean.run("sleep 300 >/dev/null 2>&1 & echo $! > /root/victim")
    clean.run("mkdir -p -m 700 /var/lib/zconsole")
    clean.run(f"cd /root/zconsole && /opt/zc/bin/python -c '{FREEZE_FOR}' $(cat /root/victim)")
    assert read(clean, FREEZE) == 1
    clean.run("kill -9 $(cat /root/victim)")
    clean.run(f"until [ $(cat {PARAMETERS}/{FREEZE}) = 0 ]; do sleep 0.2; done", timeout=60)
    assert listed(clean)[FREEZE]["set_by_us"] is None


@pytest.mark.slow
def test_a_freeze_ends_by_itself(clean: Machine):
    said = clean.run(f"zconsole tunables set {FREEZE}=1 --for 5; cat {PARAMETERS}/{FREEZE}")
    assert "restored by a guard process in 5s" in said.stderr
    assert said.stdout.splitlines()[-1] == "1"
    clean.run(f"until [ $(cat {PARAMETERS}/{FREEZE}) = 0 ]; do sleep 0.2; done", timeout=60)
    assert listed(clean)[FREEZE]["value"] == 0


@pytest.mark.slow
def test_what_a_console_set_goes_back_after_its_ssh_dropped_and_the_scan_ended(
    pool: PoolFactory, clean: Machine
):
    before = read(clean, TIME)
    pool.create("mirror d0 d1")
    pool.fill(20)
    write(clean, FREEZE, 1)
    pool.zpool("scrub", "tank")
    clean.run(f"cd /root/zconsole && /opt/zc/bin/python -c '{SET_AND_DIE}'", check=False)
    clean.run("sleep 10")
    assert read(clean, TIME) == 4000
    write(clean, FREEZE, 0)
    pool.wait_status("scrub repaired")
    clean.run(f"until [ $(cat {PARAMETERS}/{TIME}) = {before} ]; do sleep 0.2; done", timeout=90)
