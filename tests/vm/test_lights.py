"""Lights of bays in the kernel's own sysfs: an enclosure without hardware (``guest/shelf.c``)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory
from tests.vm.test_actions_tunables import PARAMETERS, SET_AND_DIE, TIME

pytestmark = pytest.mark.slow

STATE = "/var/lib/zconsole"
ENCLOSURE = "/sys/class/enclosure/0:0:0:0"
HANGS = "/sys/module/shelf/parameters/hangs"
LATER = "date -s '+4 hours 1 minute' >/dev/null"
"""Sets the clock to where every light's time is over."""
KEEPERS = "pgrep -f 'zconsole[.]cli[.]keeper'"


def put_up(vm: Machine, lit: str = "0,0,0") -> None:
    """Put the first three disks into the bays of an enclosure, with these lights on."""
    vm.run(
        "bays=$(for each in 0 1 2; do disk=$(readlink -f /dev/disk/by-id/virtio-LABDISK$each);"
        ' basename "$(dirname "$(readlink -f "/sys/block/${disk##*/}/device")")"; done);'
        f' modprobe shelf bays="$(echo "$bays" | paste -sd,)" lit={lit}'
    )


@pytest.fixture
def shelf(vm: Machine) -> Iterator[Machine]:
    """A machine with an enclosure and without saved state, as it was before afterwards."""
    vm.run(f"rm -rf {STATE}")
    put_up(vm)
    before = float(vm.run("date +%s").stdout)
    yield vm
    vm.run(
        f"[ ! -e {HANGS} ] || echo 0 >{HANGS}; pkill -9 -f 'zconsole[.]cli[.]keeper'", check=False
    )
    spent = float(vm.run("date +%s").stdout) - before
    vm.run(f"date -s '-{int(spent // 14400) * 14400} seconds'; rmmod shelf; rm -rf {STATE}")


def locate(vm: Machine, slot: int = 1) -> str:
    return vm.run(f"cat '{ENCLOSURE}/Slot {slot:02}/locate'").stdout.strip()


def light_up(vm: Machine) -> None:
    """Switch on the light of the first disk's bay."""
    assert "the light of Slot 01" in vm.run("zconsole light on LABDISK0").stderr
    assert locate(vm) == "1"


def goes_dark(vm: Machine, seconds: int = 300) -> None:
    """Wait until the first bay's light is off; raises VmError if it stays on."""
    vm.run(f"until grep -q 0 '{ENCLOSURE}/Slot 01/locate'; do sleep 0.5; done", timeout=seconds)


def test_bays_stand_in_the_status_and_their_lights_are_switched(
    pool: PoolFactory, shelf: Machine
) -> None:
    pool.create("mirror d0 d1")
    said = json.loads(shelf.run("zconsole status tank --json").stdout.splitlines()[0])
    assert "Slot 01" in json.dumps(said)
    light_up(shelf)
    [lit] = map(json.loads, shelf.run("zconsole light list --json").stdout.splitlines())
    assert (lit["bay"], lit["slot"], lit["serial"]) == ("Slot 01", "Slot 01", "LABDISK0")
    assert len(shelf.run(KEEPERS).stdout.split()) == 2  # one that works, and its parent
    shelf.run("zconsole light off LABDISK0")
    assert (locate(shelf, 1), locate(shelf, 2)) == ("0", "0")
    shelf.run(f"while {KEEPERS}; do sleep 0.5; done", timeout=60)


def test_a_light_goes_off_after_four_hours_and_one_that_was_on_stays(shelf: Machine) -> None:
    shelf.run(f"echo 1 >'{ENCLOSURE}/Slot 02/locate'")
    light_up(shelf)
    assert "it was on before" in shelf.run("zconsole light on LABDISK1").stderr
    shelf.run(LATER)
    goes_dark(shelf)
    assert locate(shelf, 2) == "1"


@pytest.mark.parametrize("rebooted", [False, True])
def test_where_both_keepers_were_killed_the_unit_makes_up_for_it(
    shelf: Machine, rebooted: bool
) -> None:
    light_up(shelf)
    shelf.run(f"kill -9 $({KEEPERS})")
    if rebooted:
        shelf.run("sync")
        shelf.reboot()
        put_up(shelf)  # switched off and on, it forgot its lights
        shelf.run("zconsole light resume")
        assert locate(shelf) == "1"
        shelf.run(f"kill -9 $({KEEPERS})")
    shelf.run(LATER)
    assert locate(shelf) == "1"
    shelf.run("zconsole light resume")
    assert locate(shelf) == "0"


def test_a_light_whose_bus_hangs_holds_up_no_tunable(pool: PoolFactory, shelf: Machine) -> None:
    before = shelf.run(f"cat {PARAMETERS}/{TIME}").stdout
    light_up(shelf)
    shelf.run(f"echo 1 >{HANGS}")
    # The command says so in time, but ends only with the kernel's call.
    shelf.run("(zconsole light off LABDISK0 >/root/said 2>&1 &)")
    shelf.run("until grep 'no answer' /root/said; do sleep 0.5; done", timeout=60)
    shelf.run(LATER)
    pool.create("mirror d0 d1")
    shelf.run(f"cd /root/zconsole && /opt/zc/bin/python -c '{SET_AND_DIE}'", check=False)
    restored = f"[ $(cat {PARAMETERS}/{TIME}) = {before.strip()} ]"
    shelf.run(f"until {restored}; do sleep 0.5; done", timeout=90)
    shelf.run(f"echo 0 >{HANGS}")
    goes_dark(shelf)
