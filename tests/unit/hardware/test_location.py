"""The bay of a disk, found in trees of real layouts."""

from __future__ import annotations

import os

import pytest

from tests.unit.hardware.chassis import PCI, Machine, expander_24, jbod_60, nvme_12
from zconsole.hardware.located_source import leaf_disk
from zconsole.hardware.location import disks_below, hubs, locations
from zconsole.pool.chassis import LeafDisk


def where(machine: Machine, path: str) -> LeafDisk:
    found = locations(machine.root)
    (names,) = disks_below(path, machine.root)
    return found.of(names)


@pytest.mark.slow
def test_a_multipath_disk_has_one_bay_by_whichever_name(tmp_path):
    machine = jbod_60(tmp_path)
    by_name = [where(machine, path) for path in ("/dev/mapper/mpath05", "/dev/sdf", "/dev/sdbn")]
    assert {(each.enclosure, each.slot, each.bay) for each in by_name} == {
        ("0x5000ccab0512ab00", "SLOT 05 A", "SLOT 05 A")
    }
    assert disks_below("/dev/mapper/mpath05", tmp_path) == (("dm-5", "sdbn", "sdf"),)
    machine.alias("B5", "dm-5")
    assert where(machine, "/dev/disk/by-vdev/B5").bay == "B5"


def test_an_nvme_slot(tmp_path):
    machine = nvme_12(tmp_path)
    assert where(machine, "/dev/nvme12n1") == LeafDisk(
        slot="12", bay="NVMe slot 12", port="pci-0000:70:00.0-nvme-1"
    )
    assert where(machine, "/dev/nvme0n1") == LeafDisk(port="pci-0000:04:00.0-nvme-1")


def test_an_nvme_disk_of_the_kernels_own_multipath(tmp_path):
    machine = Machine(tmp_path)
    machine.nvme(3, "0000:65:00.0", "9")
    subsystem = tmp_path / "sys/devices/virtual/nvme-subsystem/nvme-subsys3"
    machine.disk("nvme9n1", subsystem, "N9")
    controller = machine.block("nvme3n1").parent
    (subsystem / "nvme3").symlink_to(os.path.relpath(controller, subsystem))
    assert where(machine, "/dev/nvme9n1").bay == "NVMe slot 9"


def test_bays_of_two_shelves_carry_the_end_of_the_shelves_ids(tmp_path):
    machine = Machine(tmp_path)
    for host, key in enumerate(("0x500304801ee3ee7f", "0x500304801ee3f03f")):
        disk = machine.sas(f"sd{'ab'[host]}", host, 0, f"5000{host}")
        machine.enclosure(f"{host}:0:24:0", key, {7: disk}, name="{:03}")
    assert [where(machine, f"/dev/{d}").bay for d in ("sda", "sdb")] == [
        "ee7f slot 7",
        "f03f slot 7",
    ]


def test_a_machine_without_enclosures_tells_no_bay(tmp_path):
    machine = Machine(tmp_path)
    machine.sas("sda", 0, 0, "5000", "pci-0000:00:17.0-ata-1")
    assert where(machine, "/dev/sda") == LeafDisk(port="pci-0000:00:17.0-ata-1")
    assert locations(tmp_path).enclosures == ()
    assert locations(tmp_path / "none").of(("sda",)) == LeafDisk()
    assert disks_below("/srv/file", tmp_path) == ()


def test_an_alias_by_place_is_the_bay_and_one_made_from_an_id_is_not(tmp_path):
    machine = expander_24(tmp_path)
    machine.alias("A1", "sda")
    machine.alias("A1-part1", "sda1")
    assert where(machine, "/dev/sda")[:3] == ("A1", "0x500304801ee3ee7f", "Slot 00")
    conf = tmp_path / "etc/zfs/vdev_id.conf"
    conf.write_text("alias A1 /dev/disk/by-id/wwn-0x5000c5002de3b9ca\n")
    assert where(machine, "/dev/sda").bay == "Slot 00"


@pytest.mark.parametrize(
    ("line", "bay"),
    [
        ("alias left /dev/disk/by-path/pci-0000:00:17.0-ata-1", "left"),
        ("alias left pci-0000:00:17.0-ata-1  # the cage on the left", "left"),
        ("alias left /dev/disk/by-id/wwn-0x5000c5002de3b9ca", ""),
        ("alias left /dev/disk/by-path/pci-0000:01:00.0-sas-0x5000c5002de3b9ca-lun-0", ""),
        ("alias left", ""),
        ("#alias left pci-0000:00:17.0-ata-1", ""),
    ],
)
def test_an_alias_in_vdev_id_conf_counts_where_it_names_a_place(tmp_path, line, bay):
    machine = Machine(tmp_path)
    machine.sas("sda", 0, 0, "5000", "pci-0000:00:17.0-ata-1")
    machine.link(
        "dev/disk/by-path/pci-0000:01:00.0-sas-0x5000c5002de3b9ca-lun-0", tmp_path / "dev/sda"
    )
    (tmp_path / "etc/zfs/vdev_id.conf").write_text(f"multipath no\n{line}\n")
    assert where(machine, "/dev/sda").bay == bay


def test_the_disks_own_link_tells_where_the_class_is_not_readable(tmp_path):
    machine = expander_24(tmp_path)
    (tmp_path / "sys/class/enclosure/0:0:24:0").unlink()
    assert where(machine, "/dev/sdb")[:3] == ("Slot 01", "0:0:24:0", "Slot 01")


def test_a_partition_and_a_device_on_the_disk_are_in_its_bay(tmp_path):
    machine = expander_24(tmp_path)
    part = machine.block("sda") / "sda1"
    machine.write(part, partition=1, dev="8:99")
    machine.link("sys/class/block/sda1", part)
    (tmp_path / "dev/sda1").touch()
    crypt = tmp_path / "sys/devices/virtual/block/dm-0"
    machine.write(crypt / "dm", uuid="CRYPT-LUKS2-x")
    machine.link("sys/class/block/dm-0", crypt)
    machine.link("sys/devices/virtual/block/dm-0/slaves/sda1", part)
    (tmp_path / "dev/dm-0").touch()
    assert disks_below("/dev/dm-0", tmp_path) == disks_below("/dev/sda1", tmp_path) == (("sda",),)


def test_devices_that_are_made_of_each_other_end(tmp_path):
    machine = Machine(tmp_path)
    for one, other in (("dm-0", "dm-1"), ("dm-1", "dm-0")):
        place = tmp_path / "sys/devices/virtual/block" / one
        (place / "slaves" / other).mkdir(parents=True)
        machine.link(f"sys/class/block/{one}", place)
        (tmp_path / "dev" / one).touch()
    assert disks_below("/dev/dm-0", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "slot", "found"),
    [
        ("/dev/sdx", "/sys/class/enclosure/0:0:24:0/Slot 03", ("Slot 03", "")),
        ("/dev/sdx", "/sys/class/enclosure/9:9:9:9/Slot 03", ("", "")),
        ("/dev/sdx", "", ("", "")),
        ("/dev/sdx", "Slot 03", ("", "")),
        ("/dev/disk/by-vdev/A7-part1", "", ("A7", "")),
        ("/dev/disk/by-vdev/d1-part1", "", ("", "")),
        ("/dev/disk/by-vdev/left-part1", "", ("left", "")),
        ("/dev/disk/by-path/pci-0000:00:17.0-ata-1-part1", "", ("left", "pci-0000:00:17.0-ata-1")),
        ("/dev/disk/by-path/pci-0000:00:17.0-ata-2-part1", "", ("", "pci-0000:00:17.0-ata-2")),
    ],
)
def test_the_place_of_a_disk_that_was_gone_before(tmp_path, path, slot, found):
    expander_24(tmp_path)
    conf = "alias d1 /dev/disk/by-id/wwn-0x5000\nalias left pci-0000:00:17.0-ata-1\n"
    (tmp_path / "etc/zfs/vdev_id.conf").write_text(conf)
    where = locations(tmp_path).of_leaf(path, slot)
    assert (where.bay, where.port) == found


SAS = "0000:01:00.0/host0/port-0:0/expander-0:0"
HOST = "target2:0:0/2:0:0:0"


@pytest.mark.parametrize(
    ("way", "found"),
    [
        (f"{SAS}/port-0:0:5/end_device-0:0:5/{HOST}", "expander-0:0"),
        (
            f"{SAS}/port-0:0:24/expander-0:1/port-0:1:3/end_device-0:1:3/{HOST}",
            "expander-0:1, expander-0:0",
        ),
        (f"0000:01:00.0/host0/port-0:3/end_device-0:3/{HOST}", ""),  # a port of its own
        (f"0000:00:17.0/ata3/host2/{HOST}", "ata3"),
        (f"0000:05:00.0/host7/rport-7:0-3/{HOST}", "host7"),
        (f"0000:00:14.0/usb2/2-1/2-1.4/2-1.4:1.0/host6/{HOST}", "usb-2-1.4, usb-2-1"),
        (f"0000:03:00.0/virtio1/host2/{HOST}", ""),
    ],
)
def test_the_hubs_on_the_way_to_a_disk(tmp_path, way, found):
    machine = Machine(tmp_path)
    machine.disk("sda", tmp_path / PCI / way, "S1")
    assert hubs(("sda",), tmp_path) == found
    assert leaf_disk([("sda",)], locations(tmp_path), tmp_path).hubs == found


def test_a_multipath_disk_has_the_hubs_of_all_its_paths(tmp_path):
    machine = Machine(tmp_path)
    for disk, host in (("sda", 0), ("sdb", 1)):
        way = f"0000:0{host}:00.0/host{host}/port-{host}:0/expander-{host}:0/{HOST}"
        machine.disk(disk, tmp_path / PCI / way, "S1")
    assert hubs(("dm-0", "sda", "sdb"), tmp_path) == ""
    assert hubs(("dm-0", "sda"), tmp_path) == "expander-0:0"
    both = leaf_disk([("sda",), ("sdb",)], locations(tmp_path), tmp_path)
    assert both.hubs == "expander-0:0, expander-1:0"
