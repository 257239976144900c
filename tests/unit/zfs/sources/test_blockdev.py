from __future__ import annotations

import sys
import types

import psutil
import pytest

from tests.table import rows
from zconsole.hardware.location import device_facts
from zconsole.zfs.sources.blockdev import (
    diskstats_names,
    diskstats_rows,
    node_name,
    slaves,
)

ROWS = ("sda", "sda1", "dm-3", "nvme0n1", "nvme0n1p1", "loop0", "cciss/c0d0")


@pytest.fixture
def root(tmp_path):
    """A /sys with a partitioned disk, an NVMe disk, LUKS on sda2 and a loop device."""
    for name in ("sda", "nvme0n1", "dm-3", "dm-4", "loop0", "cciss!c0d0"):
        block = tmp_path / "sys/devices" / name
        (block / "queue").mkdir(parents=True)
        (block / "device").mkdir()
        (tmp_path / "sys/block").mkdir(exist_ok=True)
        (tmp_path / "sys/block" / name).symlink_to(block)
        _class(tmp_path, name, block)
    for disk, part in (("sda", "sda1"), ("sda", "sda2"), ("nvme0n1", "nvme0n1p1")):
        node = tmp_path / "sys/devices" / disk / part
        node.mkdir()
        (node / "partition").write_text("1")
        _class(tmp_path, part, node)
    for dm in ("dm-3", "dm-4"):
        (tmp_path / "sys/devices" / dm / "slaves/sda2").mkdir(parents=True)
    for link, target in (("disk/by-id/ata-X-part1", "../../sda1"), ("mapper/luks", "../dm-3")):
        (tmp_path / "dev" / link).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "dev" / link).symlink_to(target)
    for node in ("sda1", "sda2", "dm-3", "dm-4", "nvme0n1p1", "loop0", "cciss/c0d0"):
        (tmp_path / "dev" / node).parent.mkdir(exist_ok=True)
        (tmp_path / "dev" / node).touch()
    (tmp_path / "tank").mkdir()
    (tmp_path / "tank/sda1").touch()
    return tmp_path


def _class(root, name, target):
    (root / "sys/class/block").mkdir(parents=True, exist_ok=True)
    (root / "sys/class/block" / name).symlink_to(target)


@rows(
    ("path", "names"),
    [
        ("/dev/sda1", ("sda1",)),
        ("/dev/disk/by-id/ata-X-part1", ("sda1",)),
        ("/dev/nvme0n1p1", ("nvme0n1p1",)),
        ("/dev/mapper/luks", ("dm-3",)),
        ("/dev/loop0", ("loop0",)),
        ("/dev/cciss/c0d0", ("cciss/c0d0",)),
        ("/tank/sda1", ()),
        ("/dev/disk/by-id/gone", ()),
    ],
)
def test_the_rows_of_a_leaf(root, path, names):
    assert diskstats_names(path, ROWS, root) == names


def test_a_stacked_device_without_a_row_is_what_it_is_made_of(root):
    assert slaves("dm-4", root) == ("sda2",)
    assert diskstats_names("/dev/dm-4", (*ROWS, "sda2"), root) == ("sda2",)


def test_a_path_out_of_dev_is_no_device_even_if_it_is_called_like_one(root):
    assert node_name("/tank/sda1", root) is None


def test_diskstats_lines_by_name(root):
    (root / "proc").mkdir()
    (root / "proc/diskstats").write_text("   8  0 sda 1 2 3\n\n   8  1 sda1 4 5 6\n")
    assert diskstats_rows(root) == {"sda": "   8  0 sda 1 2 3", "sda1": "   8  1 sda1 4 5 6"}


def test_without_diskstats_psutil_counts_whole_disks(tmp_path, monkeypatch):
    found = types.SimpleNamespace(
        read_count=3, read_bytes=1024, read_time=7, write_count=4, write_bytes=2048, busy_time=9
    )
    monkeypatch.setattr(psutil, "disk_io_counters", lambda perdisk, nowrap: {"ada0": found})
    assert diskstats_rows(tmp_path) == {"ada0": "0 0 ada0 3 0 2 7 4 0 4 0 0 9 0"}
    monkeypatch.setattr(psutil, "disk_io_counters", lambda perdisk, nowrap: None)
    assert diskstats_rows(tmp_path) == {}


def test_without_diskstats_and_psutil_no_disk_is_counted(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert diskstats_rows(tmp_path) == {}


@rows(
    ("path", "rows"),
    [
        ("/dev/ada0", ("ada0",)),
        ("/dev/ada0p3", ("ada0",)),
        ("/dev/da12s1a", ("da12",)),
        ("/dev/ada0p3.eli", ("ada0",)),
        ("/dev/gpt/disk0", ()),
        ("/var/vdev/ada0", ()),
    ],
)
def test_without_sys_a_partition_has_the_row_of_its_disk(tmp_path, path, rows):
    assert diskstats_names(path, ("ada0", "da12"), tmp_path) == rows


def test_facts_of_a_partition_are_its_disks_and_its_own_size(root):
    disk = root / "sys/devices/sda"
    (disk / "device/model").write_text("WDC  WD40\n")
    (disk / "device/vendor").write_text("ATA     \n")
    (disk / "queue/rotational").write_text("1\n")
    (disk / "queue/logical_block_size").write_text("512\n")
    (disk / "queue/physical_block_size").write_text("4096\n")
    (disk / "dev").write_text("8:0\n")
    (disk / "sda1/size").write_text("2048\n")
    (root / "run/udev/data").mkdir(parents=True)
    (root / "run/udev/data/b8:0").write_text("S:disk/x\nE:ID_SERIAL_SHORT=W123\nE:ID_MODEL=WD\n")
    assert device_facts("/dev/disk/by-id/ata-X-part1", root) == {
        "device": "sda1",
        "disks": "sda",
        "serial": "W123",
        "model": "WDC WD40",
        "rotational": "1",
        "logical_sector": "512",
        "physical_sector": "4096",
        "size": str(2048 * 512),
    }


def test_facts_of_an_encrypted_device_name_the_disk_below(root):
    (root / "sys/devices/sda/device/serial").write_text("S9\n")
    facts = device_facts("/dev/mapper/luks", root)
    assert (facts["device"], facts["disks"], facts["serial"]) == ("dm-3", "sda", "S9")


def test_no_facts_of_a_file(root):
    assert device_facts("/tank/sda1", root) == {}


def test_the_capacity_of_a_large_disk(root):
    (root / "sys/devices/sda/size").write_text("15628053168\n")
    assert device_facts("/dev/sda", root)["size"] == str(15628053168 * 512)
