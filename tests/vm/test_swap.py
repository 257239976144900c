"""Guided swaps on live pools by keys: disks are pulled and plugged in, including a wrong one."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest

from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory
from tests.vm.terminal import Terminal

MIB = 1 << 20
OLD, WRONG, NEW, SPARE = 1, 2, 4, 5
"""Numbers of the disk that fails, one pulled by mistake, the new one, a hot spare."""
STORE = "/var/lib/zconsole"


class Operator:
    """An operator who watches a terminal, presses keys, and handles disks."""

    def __init__(self, vm: Machine) -> None:
        self.vm = vm
        self.terminal = Terminal(vm)

    def see(self, *patterns: str, seconds: int = 300) -> str:
        """Return the screen once it shows all of these."""
        for pattern in patterns:
            screen = self.terminal.wait(pattern, seconds)
        return screen

    def open(self) -> None:
        """Start the console with every pool of the machine."""
        self.terminal.open()
        self.see("LABDISK1")

    def begin(self, way: str) -> None:
        """Start a swap: C on the pool selects its only suspect, v the ways, the safer first."""
        self.terminal.press("g", "C")
        self.see("SWAP .*LABDISK1", "Begin")
        number = 1
        while not re.search(f"SWAP .*{way}", self.terminal.screen()):
            number += 1
            self.terminal.press("v")
            self.see(f"another way \\({number} of")
        self.terminal.press("Tab", "Enter")
        self.see("step 1 of")

    def to_pull(self) -> None:
        """Go from the first step to the pull, with no free disk or spare."""
        self.begin("Pull first")
        self.take_offline()

    def take_offline(self) -> None:
        """Go up to the pull; no bay has a light, so the serial number is shown."""
        self.see("Take virtio-LABDISK1 .*offline")  # the list of steps has a similar line
        self.do("zpool offline tank")
        self.see("Pull port .*LABDISK1", "serial number stands on its label")

    def do(self, command: str) -> None:
        """Press Enter, read the plan of the step, go from Cancel to Run, and wait until it is done.

        On a busy host a plan may be refused because no sample came in time: try again, as it says.
        """
        ended = "try again"
        while "try again" in ended:
            self.terminal.press("Enter")
            self.see(command, "Cancel +Run")
            self.terminal.press("Tab", "Enter")
            ended = self.see("Done|Started|try again")
            self.terminal.press("Escape")
            self.see("step [0-9]+ of")


@pytest.fixture
def failing(pool: PoolFactory) -> Machine:
    """A machine with checksum errors on a disk of a raidz2, and no free disk."""
    spoil(pool, "raidz2 d0 d1 d2 d3")
    return pool.machine


def spoil(pool: PoolFactory, layout: str, free: bool = False) -> None:
    """Create a pool and give one disk checksum errors, found by a scrub.

    The new disk is out, unless it is ``free`` in a bay of its own; no other disk is free.
    """
    vm = pool.machine
    vm.run(f"rm -rf {STORE}; udevadm settle")
    pool.create(layout)
    pool.create(f"raidz1 {'' if 'spare' in layout else f'd{SPARE}'} d6 d7 d8 d9", name="vault")
    pool.fill(60)
    vm.run("sha256sum /tank/data >/root/sum; sync /root/sum")
    if not free:
        vm.pull(NEW)
    vm.corrupt(OLD, 5 * MIB, 30 * MIB)
    pool.zpool("scrub", "-w", "tank")
    pool.wait_until("zpool status tank | grep -Eq 'LABDISK1 +ONLINE +0 +0 +[1-9]'")


def kept(vm: Machine) -> dict[str, Any]:
    """Return the checklist on disk."""
    text = vm.run(f"cat {STORE}/swap-*.json").stdout
    document = json.loads(text)
    checklist: dict[str, Any] = document["checklist"]
    return checklist


def states(vm: Machine) -> dict[str, str]:
    """Return the state of each row of zpool status."""
    rows = (line.split() for line in vm.run("zpool status tank").stdout.splitlines())
    return {row[0].removeprefix("virtio-"): row[1] for row in rows if len(row) > 1}


def port(vm: Machine, disk: int) -> str:
    """Return the by-path name of the port where a disk is plugged in."""
    path = vm.disks[disk].path
    links = f"for each in /dev/disk/by-path/*; do [ $each -ef {path} ] && basename $each; done"
    return vm.run(f"{links}; true").stdout.split()[0]


@pytest.mark.slow
def test_a_disk_is_swapped_by_keys_and_the_wrong_pull_is_caught(failing: Machine) -> None:
    vm, operator = failing, Operator(failing)
    bay, place = vm.bay(OLD), port(vm, OLD)
    operator.open()
    operator.to_pull()
    assert states(vm)["LABDISK1"] == "OFFLINE"
    pull_the_wrong_one(operator)
    operator.vm.pull(OLD)
    operator.see("Insert the new disk into")
    vm.plug(NEW, bay)
    assert port(vm, NEW) == place
    finish(operator)


def pull_the_wrong_one(operator: Operator) -> None:
    """Pull another disk of the vdev; the swap goes on once it is back and resilvered."""
    vm = operator.vm
    bay = vm.bay(WRONG)
    vm.pull(WRONG)
    operator.see("WRONG DISK: put ", "LABDISK2\\) back")
    vm.run("head -c 8M /dev/urandom >/tank/meanwhile; zpool sync")
    vm.plug(WRONG, bay)
    operator.see("Bring .*LABDISK2|Wait until .*LABDISK2")
    if "Bring" in operator.terminal.screen():
        operator.do("zpool (online|clear)")
    operator.see("Pull port .*LABDISK1")


def finish(operator: Operator) -> None:
    """Go from the new disk in the bay to the report."""
    operator.see("› Replace", "LABDISK4")
    operator.do("zpool replace")
    scrub_and_report(operator)


def scrub_and_report(operator: Operator) -> None:
    """Do the last steps, and check what is left behind."""
    vm = operator.vm
    operator.see("Scrub tank")
    operator.do("zpool scrub tank")
    operator.see("Save the report", "serial LABDISK4\\) has", "What happened")
    operator.terminal.press("r")
    operator.see("Report saved")
    checklist = kept(vm)
    assert checklist["state"] == "done"
    assert checklist["old"]["serial"] == "LABDISK1"
    assert checklist["new"]["serial"] == "LABDISK4"
    said = states(vm)
    assert "LABDISK1" not in said
    assert {said[f"LABDISK{number}"] for number in (0, 2, 3, 4)} == {"ONLINE"}
    vm.run("zpool wait -t scrub tank; sha256sum -c /root/sum", timeout=300)


@pytest.mark.slow
def test_a_swap_with_the_power_off_goes_on_after_the_boot(failing: Machine) -> None:
    vm, operator = failing, Operator(failing)
    operator.open()
    operator.to_pull()
    operator.see("Without hot-plug")
    before = kept(vm)
    swap_without_power(vm)
    assert states(vm)["LABDISK1"] != "ONLINE"
    operator.terminal.open()
    operator.see("disk swap unfinished")
    operator.terminal.press("C")
    finish(operator)
    after = kept(vm)
    assert after["id"] == before["id"]
    said = [entry["text"] for entry in after["log"]]
    assert "the machine was booted" in said
    assert any(text.endswith("is out: another disk is in its bay") for text in said)


def swap_without_power(vm: Machine) -> None:
    """Cut the power, put the new disk into the bay of the old one, and boot."""
    bays = {disk.index: vm.bay(disk.index) for disk in vm.disks if disk.index != NEW}
    bays[NEW] = bays.pop(OLD)
    vm.run("sync")
    vm.reboot(bays)
    vm.run("zpool import -a")


@pytest.mark.slow
def test_where_a_disk_is_free_it_replaces_first(pool: PoolFactory) -> None:
    spoil(pool, "raidz2 d0 d1 d2 d3", free=True)
    operator = Operator(pool.machine)
    operator.open()
    operator.begin("Replace first")
    operator.do("zpool replace tank")
    operator.see("Pull port .*LABDISK1", "serial number stands on its label")
    assert "LABDISK1" not in states(pool.machine)
    operator.vm.pull(OLD)
    scrub_and_report(operator)
    assert kept(pool.machine)["mode"] == "replace-first"


@pytest.mark.slow
def test_a_hot_spare_stands_in_until_the_new_disk_is_filled(pool: PoolFactory) -> None:
    spoil(pool, f"raidz2 d0 d1 d2 d3 spare d{SPARE}")
    vm, operator = pool.machine, Operator(pool.machine)
    bay = vm.bay(OLD)
    operator.open()
    operator.begin("hot spare")
    operator.do("zpool replace tank")
    operator.take_offline()
    assert rows(vm, SPARE) == ["ONLINE", "INUSE"]
    operator.vm.pull(OLD)
    vm.plug(NEW, bay)
    operator.see("› Replace", "LABDISK4")
    operator.do("zpool replace")
    operator.see("Scrub tank")  # the kernel itself detaches the spare after the resilver
    assert rows(vm, SPARE) == ["AVAIL"]
    scrub_and_report(operator)
    assert kept(vm)["mode"] == "spare-first"


def rows(vm: Machine, disk: int) -> list[str]:
    """Return the states of all rows of a disk: a spare in use has two."""
    lines = (line.split() for line in vm.run("zpool status tank").stdout.splitlines())
    return [words[1] for words in lines if words[:1] == [f"virtio-LABDISK{disk}"]]


@pytest.mark.slow
def test_a_wrong_pull_that_suspends_the_pool_loses_nothing(pool: PoolFactory) -> None:
    """In a raidz1 that already lacks a disk, pulling the wrong one suspends the pool."""
    spoil(pool, "raidz1 d0 d1 d2 d3")
    vm, operator = pool.machine, Operator(pool.machine)
    old, wrong = vm.bay(OLD), vm.bay(WRONG)
    operator.open()
    operator.to_pull()
    operator.see("loses data")
    vm.pull(WRONG)
    vm.run(f"setsid -f sh -c {shlex.quote(WRITE)} </dev/null >/dev/null 2>&1")
    pool.wait_until("grep -q SUSPENDED /proc/spl/kstat/zfs/tank/state")
    operator.see("WRONG DISK: put .*LABDISK2", "tank is suspended")
    vm.plug(WRONG, wrong)
    operator.see("Bring .*LABDISK2")
    operator.do("zpool clear tank")
    operator.see("Pull port .*LABDISK1")
    vm.pull(OLD)
    operator.see("Insert the new disk into")
    vm.plug(NEW, old)
    finish(operator)
    assert "/tank/data: OK" in vm.run("sha256sum -c /root/sum").stdout


WRITE = "head -c 8M /dev/urandom >/tank/meanwhile; sync"
"""Fails on a pool that lost too many disks, because it is suspended."""
