"""How a disk is told from others."""

from __future__ import annotations

from tests.table import rows
from zconsole.hardware.device import Device
from zconsole.swap.disk import SwapDisk

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
