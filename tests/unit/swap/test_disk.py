"""Identification of disks."""

from __future__ import annotations

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.swap.playing import EMPTY, NEW, OLD, Play
from zconsole.diagnosis.device_errors.faults import Deltas, DeviceFault
from zconsole.errors import NotFoundError, UsageError
from zconsole.hardware.device import Device
from zconsole.sim import commands, lifecycle
from zconsole.swap.disk import SwapDisk, device_named, free_to_go, gone_from, proposed

PLACE = "/dev/disk/by-path/pci-0000:00:05.0"


def device(path: str, *aliases: str, serial: str = "") -> Device:
    return Device(path, aliases[-1] if aliases else path, aliases=aliases, serial=serial)


@rows(
    ("disk", "found", "same"),
    [
        (SwapDisk("vdb", whole=PLACE, node="/dev/vdb"), device(PLACE, "/dev/vdc"), True),
        (
            SwapDisk("vdb", whole=PLACE, node="/dev/vdb"),
            device("/dev/disk/by-path/pci-0000:00:06.0", "/dev/vdb"),
            False,
        ),
        (SwapDisk("vdb", whole="/dev/vdb", node="/dev/vdb"), device(PLACE, "/dev/vdb"), True),
        (
            SwapDisk("vdb", whole=PLACE, node="/dev/vdb", serial="A"),
            device("/dev/disk/by-id/virtio-A", "/dev/vdz", serial="A"),
            True,
        ),
    ],
)
def test_a_disk_is_known_by_its_link_when_kernel_names_change(disk, found, same):
    assert disk.is_on(found) is same


def test_a_device_is_named_by_bay_serial_guid_path_name_or_node():
    play = Play()
    leaf, view = play.leaf(), play.view()
    node = leaf.device
    words = (OLD, leaf.devid[-8:], str(leaf.guid), leaf.path, leaf.name, f"/dev/{node}", node)
    assert {device_named(view, word) for word in words} == {str(leaf.guid)}


def test_an_unknown_device_is_an_error():
    with pytest.raises(NotFoundError):
        device_named(Play().view(), "Slot 99")


def test_a_name_of_two_devices_is_an_error():
    play = Play()
    play.leaf("Slot 01").slot = play.leaf().slot
    with pytest.raises(UsageError):
        device_named(play.view(), OLD)


def test_failed_devices_come_before_those_with_errors_and_new_errors_before_old():
    play = Play()
    old = play.leaf()
    doubtful, lost = play.leaf("Slot 02"), play.leaf("Slot 03")
    lifecycle.lose(play.pool, lost)
    play.faults = (DeviceFault(str(doubtful.guid), "x", Deltas(read=3), 1.0),)
    assert [t.key for t in proposed(play.view())] == [
        str(lost.guid),
        str(doubtful.guid),
        str(old.guid),
    ]


def test_a_failed_device_that_is_being_replaced_has_gone_from():
    play = Play()
    play.hands.insert(NEW, EMPTY)
    commands.replace(play.pool, str(play.leaf().guid), str(play.pool.host.shelf[0].guid))
    assert gone_from(play.view()) == ()
    lifecycle.lose(play.pool, play.leaf())
    assert [t.key for t in gone_from(play.view())] == [str(play.leaf().guid)]


def test_a_device_that_a_suspended_pool_lost_has_gone_from():
    play = Play()
    play.view()
    for bay in ("Slot 01", "Slot 02"):
        lifecycle.lose(play.pool, play.leaf(bay))
    key = str(play.leaf("Slot 03").guid)
    lifecycle.lose(play.pool, play.leaf("Slot 03"))
    assert play.pool.suspended
    assert key in [t.key for t in gone_from(play.view())]


def test_disks_that_hold_nothing_are_named_such_as_replaced_ones():
    play = Play()
    assert not free_to_go(play.view())
    play.hands.insert(NEW, EMPTY)
    (new,) = [d for d in play.view().devices if d.bay == EMPTY]
    assert free_to_go(play.view()) == f"{EMPTY} (serial {new.serial})"
    play.devices = lambda found: tuple(
        replace(d, mounted=("/srv",)) if d.bay == EMPTY else d for d in found
    )
    assert not free_to_go(play.view())
