"""Serial number, World Wide Name and model of a disk."""

from __future__ import annotations

from tests.unit.hardware.chassis import Machine
from zconsole.hardware.location import identity


def test_the_kernels_word_then_udevs(tmp_path):
    machine = Machine(tmp_path)
    machine.nvme(0, "0000:04:00.0")
    found = identity(machine.block("nvme0n1"), tmp_path)
    assert (found.serial, found.model, found.wwn) == ("N0", "LAB NVME", "")
    machine.sas("sda", 0, 0, "5000c5")
    found = identity(machine.block("sda"), tmp_path)
    assert (found.serial, found.model, found.wwn) == ("5000c5", "DISK 2T", "naa.5000c5")


def test_without_udev_the_kernels_copy_of_the_serial_number_page_is_read(tmp_path):
    machine = Machine(tmp_path)
    device = machine.sas("sda", 0, 0, "x")
    (tmp_path / "run/udev/data/b8:1").unlink()
    (device / "vpd_pg80").write_bytes(b"\0\x80\0\x0c    ZC1A2B3C")
    assert identity(machine.block("sda"), tmp_path).serial == "ZC1A2B3C"
    for damaged in (b"", b"\0\x83\0\x04ABCD", b"\0\x80"):
        (device / "vpd_pg80").write_bytes(damaged)
        assert identity(machine.block("sda"), tmp_path).serial == ""
