"""Disks are named by bay and serial first in every refusal, title and line of the report."""

from __future__ import annotations

import re

import pytest

from tests.lock.plans.swaps import swaps
from tests.table import rows
from tests.unit.actions.pools import MODERN, at, disk, group, pool, top
from tests.unit.swap.views import KEY, chosen, view
from zconsole.errors import UsageError
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import Vdev
from zconsole.swap.disk import MachineView, device_named
from zconsole.swap.several import together

ZPOOLS = re.compile(r"(?<![/\w-])(?:ata|nvme|scsi)-\w+(?:-\w+)*")
"""Matches a name that only zpool has."""
BY_HAND = re.compile(r"`[^`]*`|\b(zpool|zconsole) [a-z]+( [\w/-]+){1,3}")
FACTS = ("where: ", "| name |", "type ")
"""Prefixes of lines that tell which disk a zpool name is."""
PLAYS = (
    "played/with lights",
    "played/a wrong disk",
    "played/disks that do not fit",
    "choices/failed-disk",
)


@rows("name", PLAYS)
def test_no_line_of_a_swap_calls_a_disk_as_zpool_does(name):
    lines = [re.sub(r"\$ .*?  #", "#", line).strip() for line in dict(swaps())[name](True)]
    said = [
        BY_HAND.sub("", line)
        for line in lines
        if not line.startswith(FACTS) and not re.fullmatch(r"\S+ in \S+ of \S+", line)
    ]
    assert said
    assert [line for line in said if ZPOOLS.search(line)] == []


def named(guid: int, bay: str, state: str = "ONLINE", **fields) -> Vdev:
    known = LeafDisk(bay=bay, serial=f"S{guid}")
    return disk(f"ata-WDC_{guid}", guid, state, disk=known, **fields)


OLD, NEW = named(1000, "bay03"), named(1900, "bay09")
PAIR = group("replacing", OLD._replace(state="FAULTED"), NEW)


@rows(
    ("devices", "key", "said"),
    [
        ((OLD._replace(kind="file"),), KEY, "bay03 (serial S1000) is a file"),
        ((OLD._replace(vclass="cache"),), KEY, "bay03 (serial S1000) is a cache device"),
        ((PAIR,), "1900", "bay09 (serial S1900) takes the place of bay03 (serial S1000)"),
    ],
)
def test_a_refusal_names_bay_and_serial_first(devices, key, said):
    found = chosen(view(*devices, disks=()), key)
    assert found.refusal is not None
    assert found.refusal.why.startswith(said)
    for line in (found.refusal.why, *found.refusal.manual):
        assert not ZPOOLS.search(BY_HAND.sub("", line))


def test_a_name_of_two_devices_says_which():
    twins = tuple(named(guid, f"bay0{guid - 1000}")._replace(name="ata-X") for guid in (1001, 1002))
    with pytest.raises(UsageError, match=r"bay01 \(serial S1001\), bay02 \(serial S1002\)"):
        device_named(view(*twins, disks=()), "ata-X")


def test_devices_whose_cable_may_be_bad_are_named_by_bay():
    noisy = named(1000, "bay03")
    noisy = noisy._replace(errors=noisy.errors._replace(cksum=40))
    seen = MachineView(at(pool(top("raidz2", 0, 6, noisy)), MODERN))
    target = seen.target(KEY)
    assert target is not None
    assert "bay03 (serial S1000)" in " ".join(together(seen, [target], {}).text)
