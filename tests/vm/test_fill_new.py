"""Full vdevs that take no new writes while a rebalance runs, on live pools."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from tests.vm.machine import Machine
from tests.vm.test_rebalance import (
    changes,
    lopsided,
    manifest,
    need,
    plan,
    rebalance,
    wait_for_end,
)

OPTIONS = "-O compression=off"
FILES, SIZE = 300, 1_000_000
TO_EVEN = "/tank/data --until-spread 0.05"
NAME = "$(zpool list -vH tank | awk 'NR == 2 { print $1 }')"
"""The first disk of the pool, as zpool calls it."""
AVAILABLE = "zfs get -Hp -o value available tank"


@pytest.fixture
def full(vm: Machine) -> Machine:
    """A machine with a pool whose first disk is 40 % full, and its second empty."""
    if not (2, 2) <= vm.image.zfs_version < (2, 5):
        pytest.skip("no vdev properties before 2.2; refused with builds of master")
    lopsided(vm, FILES, SIZE, OPTIONS)
    return vm


def allocating(vm: Machine) -> str:
    """Return whether the first disk takes new writes: on or off."""
    return vm.run(f"zpool get -H -o value allocating tank {NAME}").stdout.strip()


def until(condition: Callable[[], bool], seconds: float = 40.0) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(1.0)


def held(vm: Machine) -> list[object]:
    """Return the keeper's records."""
    found: list[object] = json.loads(vm.run("cat /var/lib/zconsole/held-vdevs.json").stdout)["held"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["rewrite", "copy"])
def test_less_moves_and_the_vdev_takes_new_writes_again(full: Machine, engine: str) -> None:
    vm = full
    need(vm, engine)
    before, was = manifest(vm, "/tank/data"), int(vm.run(AVAILABLE).stdout)
    words = f"{TO_EVEN} --engine {engine}"
    usual, kept = plan(vm, words), plan(vm, f"{words} --fill-new")
    assert kept["refused"] is None
    assert kept["bytes_to_target"] < 0.75 * usual["bytes_to_target"]
    assert usual["fill_new"]["bytes_to_target"] == kept["bytes_to_target"]
    vm.run(f"zconsole rebalance run {words} --fill-new --limit-rate 10M --yes --detach")
    until(lambda: allocating(vm) == "off")
    less = was - int(vm.run(AVAILABLE).stdout)
    assert abs(less - kept["fill_new"]["less_available_bytes"]) < 0.1 * less
    assert "full vdevs" in vm.run("zconsole keeper").stdout
    assert "allocating=off" in plan(vm, f"{words} --fill-new")["refused"]  # somebody's already
    finished = wait_for_end(vm)
    assert finished["why"] == "target spread reached"
    assert finished["bytes_handled"] < 1.2 * kept["bytes_to_target"]
    until(lambda: allocating(vm) == "on")
    until(lambda: held(vm) == [])
    assert abs(int(vm.run(AVAILABLE).stdout) - was) < 0.05 * was
    assert changes(vm, "/tank/data", before) == []


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "killed", "keeper killed", "reboot"])
def test_it_is_undone_however_the_job_ends(full: Machine, how: str) -> None:
    vm = full
    before = manifest(vm, "/tank/data")
    vm.run(f"zconsole rebalance run {TO_EVEN} --fill-new --limit-rate 1M --yes --detach")
    until(lambda: allocating(vm) == "off")
    (job,) = rebalance(vm, "status")[1]
    if how == "stop":
        vm.run(f"zconsole rebalance stop {job['job']}")
    elif how == "reboot":
        vm.reboot()
        vm.run("zpool import -a; zfs mount -a", check=False)
        assert allocating(vm) == "off"  # ZFS keeps it
        rebalance(vm, "resume --all --limit-rate 100M")
        until(lambda: allocating(vm) == "off")
        assert wait_for_end(vm)["state"] == "finished"
    else:
        killed = "$(pgrep -f 'rebalance run' | head -1)"
        keeper = json.loads(vm.run("zconsole keeper --json").stdout.splitlines()[0])["process"]
        if how == "keeper killed":
            killed += f" $(pgrep -P {keeper}) {keeper}"
        vm.run(f"kill -9 {killed}", check=False)
        if how == "keeper killed":
            time.sleep(7.0)
            assert allocating(vm) == "off"
            rebalance(vm, "resume --all --limit-rate 100M")  # as the next console does
            assert wait_for_end(vm)["state"] == "finished"
    until(lambda: allocating(vm) == "on")
    until(lambda: held(vm) == [])
    assert changes(vm, "/tank/data", before) == []


@pytest.mark.slow
def test_what_somebody_else_set_stays(full: Machine) -> None:
    vm = full
    vm.run(f"zpool set allocating=off tank {NAME}")
    assert "allocating=off" in plan(vm, f"{TO_EVEN} --fill-new")["refused"]
    rebalance(vm, f"run {TO_EVEN} --yes", check=False)
    assert allocating(vm) == "off"
