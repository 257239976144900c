"""Swaps that are not guided, with the manual steps instead."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import CHECKPOINT, MODERN, at, disk, group, pool, top
from zconsole.hardware.device import Contents, Device
from zconsole.pool.model import Activity, Scan, Vdev
from zconsole.swap.choice import Refusal, choose
from zconsole.swap.disk import MachineView

KEY = "1000"


def leaf(path: str, name: str = "", **fields) -> Vdev:
    name = name or path.rpartition("/")[2]
    return replace(disk("x", 1000), **{"name": name, "path": path, **fields})


def refused(changed: Vdev, *devices: Device) -> Refusal | None:
    facts = replace(MODERN, devices=devices)
    found = choose(MachineView(at(pool(top("mirror", 0, 2, changed)), facts)), KEY)
    assert found is not None
    assert found.refusal is None or found.way is None
    return found.refusal


SDA = Device("/dev/disk/by-id/ata-A", "/dev/sda", ("/dev/disk/by-id/ata-A-part3", "/dev/sda3"))
PART = leaf("/dev/disk/by-id/ata-A-part3")


@rows(
    ("fields", "text"),
    [
        ({"mounted": ("/boot/efi",)}, "/boot/efi is mounted from it"),
        ({"swap": True}, "used as swap"),
        ({"holders": ("md0",)}, "md0 is built on it"),
        ({"contents": Contents(("vfat on sda1",))}, "it also holds vfat on sda1"),
    ],
)
def test_a_partition_beside_something_else_has_manual_steps(fields, text):
    found = refused(PART, replace(SDA, **fields))
    assert found is not None
    assert text in found.why
    assert found.commands[0] == "zpool offline tank 1000"
    assert found.commands[-1] == "zpool replace tank 1000 /dev/disk/by-id/NEW-part3"
    assert any("sgdisk --replicate" in line for line in found.manual)


def test_a_partition_alone_on_its_disk_is_guided():
    assert refused(PART, SDA) is None


@rows("path", ["/dev/mapper/luks-1", "/dev/dm-3", "/dev/md127"])
def test_a_device_made_of_others_has_manual_steps(path):
    found = refused(leaf(path))
    assert found is not None
    assert any("cryptsetup" in line for line in found.manual)
    tools = {command.split()[0] for command in found.commands}
    assert tools == {"lsblk", "zpool"}, "only what can be run as it stands is copied"


@rows(
    ("fields", "text"),
    [
        ({"kind": "file"}, "is a file"),
        ({"kind": "dspare"}, "nothing to pull"),
        ({"vclass": "cache"}, "no data of its own"),
    ],
)
def test_what_is_no_disk_of_data_is_refused(fields, text):
    found = refused(leaf("/srv/x", **fields))
    assert found is not None
    assert text in found.why


def test_the_new_disk_of_a_replace_is_never_pulled_as_the_old_one():
    new = replace(disk("n0", 70), resilvering=True)
    filling = group("replacing", disk("d00", 1000), new)
    v = MachineView(at(pool(top("mirror", 0, 2, filling)), MODERN))
    found = choose(v, "70")
    assert found is not None
    assert found.refusal is not None
    assert found.refusal.why == "n0 takes the place of d00: name d00 to swap that one"
    assert "zpool detach tank" in found.refusal.manual[0]


PAIR = group("replacing", disk("d00", 1000), disk("n0", 70))
RESILVERING = Scan("resilver", "running", start=900.0)
DISCARD, AGAIN = "zpool checkpoint -d tank", "zpool resilver tank"


def beside(activity: Activity, *scans: Scan, members=(PAIR,)) -> Refusal:
    seen = pool(top("mirror", 0, 2, *members), scans=scans, activities=(activity,))
    choice = choose(MachineView(at(seen, MODERN)), "1000")
    assert choice is not None
    assert choice.refusal is not None
    assert choice.way is None
    return choice.refusal


@rows(
    ("refusal", "commands"),
    [
        (beside(CHECKPOINT), (DISCARD, AGAIN)),
        (beside(CHECKPOINT, RESILVERING), (DISCARD,)),
        (beside(CHECKPOINT, members=(disk("d00", 1000),)), (DISCARD,)),
        (beside(Activity("checkpoint", "running")), (AGAIN,)),
    ],
)
def test_no_swap_begins_beside_a_checkpoint_and_the_commands_are_named(refusal, commands):
    assert "checkpoint" in refusal.why
    assert "CHECKPOINT" in refusal.title
    assert refusal.commands == commands
