"""Features of newer OpenZFS releases, by keys; on an older one, the menu explains why not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.vm.machine import Machine
from tests.vm.operating import Operator
from tests.vm.pools import PoolFactory
from tests.vm.states import SLOW_BPS
from tests.vm.terminal import Terminal

MIB = 1 << 20
HOLD = "/sys/module/zfs/parameters/zfs_scan_suspend_progress"
START = 180
"""Seconds for the console to start with emulation."""
ERRORS, NEW, DATES = "Scrub only known errors", "Scrub only what is new", "Scrub a range of dates"
HOURS = "Scrub only in some hours"


def create(pool: PoolFactory, layout: str, options: str = "") -> None:
    """Create a pool on a machine without saved state."""
    pool.machine.run("rm -rf /var/lib/zconsole")
    pool.create(layout, options=options)


@pytest.fixture
def raidz(pool: PoolFactory) -> PoolFactory:
    """A pool that was never scrubbed."""
    create(pool, "raidz1 d0 d1 d2 d3")
    pool.fill(20)
    return pool


@pytest.fixture
def held(raidz: PoolFactory) -> Iterator[PoolFactory]:
    """A pool that was never scrubbed, with scans paused."""
    raidz.machine.run(f"echo 1 >{HOLD}")
    yield raidz
    raidz.machine.run(f"echo 0 >{HOLD}; zconsole scrub off tank || true")


def opened(vm: Machine, sight: str = "LABDISK1") -> Operator:
    operator = Operator(Terminal(vm))
    operator.terminal.open("tank")
    operator.see(sight, START)
    return operator


def typed(operator: Operator, text: str) -> None:
    """Type an answer: tmux has a name for the space key."""
    operator.press(*("Space" if letter == " " else letter for letter in text), "Enter")


def menu(operator: Operator, key: str, title: str, text: str) -> None:
    """Choose a line of a menu."""
    operator.press(key)
    operator.see(f"^ *{title}")
    operator.choose(text)


def lines_of_history(vm: Machine) -> list[str]:
    """Return the commands in the pool's history."""
    lines = vm.run("zpool history tank").stdout.splitlines()
    return [line.partition(" ")[2] for line in lines]


@pytest.mark.slow
def test_scrubs_of_a_part(raidz: PoolFactory) -> None:
    vm = raidz.machine
    operator, version = opened(vm), vm.image.zfs_version
    operator.press("S")
    operator.see("Scrub and resilver")
    operator.refused(ERRORS, "2.2" if version < (2, 2) else "no known errors")
    operator.refused(NEW, "needs OpenZFS 2.3" if version < (2, 3) else "no scrub has completed")
    if version < (2, 4):
        operator.refused(DATES, "needs OpenZFS 2.4")
    operator.choose("Start or resume a scrub")
    operator.run("zpool scrub tank")
    operator.see("scrub finished", 120)
    if version >= (2, 3):
        raidz.fill(4, "/tank/more")
        menu(operator, "S", "Scrub and resilver", NEW)
        assert "does not count as a full scrub" in operator.run("zpool scrub -C tank")
        raidz.wait_until("zpool history tank | grep -q 'scrub -C'")
        raidz.wait_status("scrub repaired 0B")
    if version >= (2, 4):
        day = vm.run("date +%Y-%m-%d").stdout.strip()
        menu(operator, "S", "Scrub and resilver", DATES)
        operator.see("WRITTEN FROM")
        typed(operator, f"2001-01-01 to {day}")
        operator.run(f"zpool scrub -S 2001-01-01 -E {day} tank")
        assert f"zpool scrub -S 2001-01-01 -E {day} tank" in lines_of_history(vm)


@pytest.mark.slow
def test_known_errors_are_scrubbed_again(pool: PoolFactory) -> None:
    vm = pool.machine
    if vm.image.zfs_version < (2, 2):
        pytest.skip("no error scrub before 2.2: its row is grey above")
    create(pool, "d1", options="-O primarycache=metadata")
    vm.run("zfs create tank/a; head -c 64K /dev/urandom >/tank/a/bad; zpool sync")
    pool.damage("tank/a", ["/tank/a/bad"], 1)
    vm.run("cat /tank/a/bad >/dev/null", check=False)
    pool.wait_status("/tank/a/bad")
    operator = opened(vm)
    menu(operator, "S", "Scrub and resilver", ERRORS)
    operator.run("zpool scrub -e tank")
    operator.see("error scrub finished", 120)
    assert "zpool scrub -e tank" in lines_of_history(vm)
    pool.wait_status("/tank/a/bad")  # it is still unreadable


@pytest.mark.slow
def test_a_scrub_keeps_to_hours(held: PoolFactory) -> None:
    vm = held.machine
    hour = int(vm.run("date +%H").stdout)
    operator = opened(vm)
    menu(operator, "S", "Scrub and resilver", "Start or resume a scrub")
    operator.run("zpool scrub tank")
    closed = f"{(hour + 2) % 24:02}:00-{(hour + 3) % 24:02}:00"
    set_hours(operator, closed, "is paused now")
    held.wait_status("scrub paused", 120)
    operator.see("scrub hours")
    set_hours(operator, f"{hour:02}:00-{(hour + 2) % 24:02}:00", "resumes now")
    held.wait_status("scrub in progress", 120)
    menu(operator, "S", "Scrub and resilver", "Scrub at any hour again")
    assert "drops the hours" in operator.run("drops the hours")


def set_hours(operator: Operator, hours: str, then: str) -> None:
    """Set the hours of scrubs; the plan says what happens at once."""
    menu(operator, "S", "Scrub and resilver", HOURS)
    operator.see("ONLY IN THESE HOURS")
    typed(operator, hours)
    assert then in " ".join(operator.run("will run|Will run").split())


@pytest.mark.slow
def test_reads_go_around_a_device(raidz: PoolFactory) -> None:
    vm = raidz.machine
    operator = opened(vm)
    out, auto = "Let reads go around it", "Switch autosit of raidz1-0"
    if vm.image.zfs_version < (2, 4):
        operator.go_to("LABDISK1")
        operator.press("A")
        operator.see("ACTIONS")
        operator.press("G", "Enter")
        operator.refused(out, "needs OpenZFS 2.4")
        operator.refused(auto, "needs OpenZFS 2.4")
        return
    for now, told in (("on", "reads go around .*LABDISK1"), ("off", "reads use .*LABDISK1")):
        operator.go_to("LABDISK1")
        menu(operator, "A", "ACTIONS", out)
        operator.run(f"zpool set sit_out={now} tank")
        raidz.wait_until(f"[ $({SITS}) = {int(now == 'on')} ]")
        operator.see(told)
    operator.go_to("LABDISK1")
    menu(operator, "A", "ACTIONS", auto)
    operator.run("zpool set autosit=on tank")
    assert vm.run("zpool get -H -o value autosit tank raidz1-0").stdout.strip() == "on"


SITS = "zpool get -H -o value sit_out tank all-vdevs | grep -cx on; true"
"""Prints how many devices sit out."""


@pytest.mark.slow
def test_a_raidz_is_expanded_and_its_progress_is_seen(raidz: PoolFactory) -> None:
    vm = raidz.machine
    operator = opened(vm)
    raidz.slow(4, bps=SLOW_BPS)
    operator.go_to("raidz1-0")
    menu(operator, "A", "ACTIONS", "Attach a device")
    operator.see("ATTACH TO raidz1-0")
    if vm.image.zfs_version < (2, 3):
        operator.choose("virtio-LABDISK4")
        operator.see("OpenZFS 2.3")
        return
    operator.choose("virtio-LABDISK4")
    operator.run("zpool attach tank", typed="raidz1-0")
    operator.see("expansion .*running", 120)
    operator.see("ETA [0-9]", 120)
    raidz.slow(4, bps=0)
    assert "expansion" in operator.see("expansion .*finished", 180)


@pytest.mark.slow
def test_a_rewrite_keeps_incremental_sends_from_growing(pool: PoolFactory) -> None:
    vm = pool.machine
    if vm.image.zfs_version < (2, 3):
        pytest.skip("no rewriting in place before 2.3.4")
    create(pool, "d1")
    vm.run("mkdir /tank/films")
    pool.fill(100, "/tank/films/one")
    vm.run("zfs snapshot tank@before")
    pool.zpool("add", "tank", "d2")
    operator = opened(vm)
    operator.press("B")
    operator.see("New job")
    operator.press("Enter")
    operator.see("films")
    operator.press("j", "Space")
    operator.see("1 marked")
    operator.press("Enter")
    operator.see("Show the plan +/tank/films")
    planned(operator, "-P: incremental", "-P" if vm.image.zfs_version >= (2, 4) else "2.4")
    if vm.image.zfs_version < (2, 4):
        return
    operator.back("Show the plan")
    planned(operator, "-S -C: not what", "2.5" if vm.image.zfs_version < (2, 4, 99) else "-S")
    operator.back("Show the plan")
    operator.choose("More")
    for _ in range(3):  # past both, and all blocks
        operator.choose("Rewrite in place")
    operator.see("-P: incremental")
    operator.back("Show the plan")
    planned_run(operator)
    # Count the bytes of the stream: the estimate of `zfs send -n` includes the blocks that moved.
    sent = vm.run("zfs snapshot tank@after; zfs send -i @before tank@after | wc -c").stdout
    assert int(sent) < MIB


def planned(operator: Operator, option: str, said: str) -> None:
    """Switch to the next option of rewriting in place, and see its plan."""
    operator.choose("More")
    operator.choose("Rewrite in place")
    operator.see(option)
    operator.back("Show the plan")
    operator.choose("Show the plan")
    operator.see(said, 120)


def planned_run(operator: Operator) -> None:
    """Run the plan to its end."""
    operator.choose("Show the plan")
    assert "Not possible" not in operator.see("Cancel +Run", 120)
    operator.press("Tab", "Enter")
    operator.see("^ finished", 300)
