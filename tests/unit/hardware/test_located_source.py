"""Samples with the places of disks, on faked machines."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.unit.hardware.chassis import Machine, expander_24, jbod_60
from zconsole.hardware import located_source
from zconsole.hardware.located_source import (
    LocatedSource,
    Surroundings,
    recorded_slots,
    surroundings,
)
from zconsole.pool.chassis import LeafDisk
from zconsole.zfs.decode import decode
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.kernel.nvlist import ENCLOSURE
from zconsole.zfs.sources.recording import line_of, raw_of


class Pool:
    """A source of one mirror of these disks."""

    capabilities = Capabilities("text")

    def __init__(self, *paths: str) -> None:
        self.paths = paths
        self.closed = False

    async def sample(self):
        names = {path: path.rpartition("/")[2] for path in self.paths}
        rows = "".join(f"\t    {name}  ONLINE  0 0 0\n" for name in names.values())
        text = (
            "  pool: tank\n state: ONLINE\nconfig:\n\n\tNAME  STATE  READ WRITE CKSUM\n"
            f"\ttank  ONLINE  0 0 0\n\t  mirror-0  ONLINE  0 0 0\n{rows}\n"
            "errors: No known data errors\n"
        )
        return ({"t": 1.0, "source": "text", "pool": "tank", "text": text, "names": names},)

    async def aclose(self):
        self.closed = True


def leaves(raw) -> dict[str, LeafDisk | None]:
    (sample,) = decode(raw)
    return {leaf.name: leaf.disk for leaf in sample.pool.root.leaves()}


async def test_leaves_have_their_bays_from_the_first_sample_on(tmp_path):
    machine = expander_24(tmp_path)
    source = LocatedSource(Pool("/dev/sda", "/dev/sdb"), machine.root)
    (raw,) = await source.sample()
    found = leaves(raw)["sdb"]
    assert (found.bay, found.serial, found.wwn) == (
        "Slot 01",
        "5000c50000000001",
        "naa.5000c50000000001",
    )
    assert len(raw["enclosures"][0]["slots"]) == 24
    await source.aclose()


@pytest.mark.slow
async def test_a_recording_keeps_them(tmp_path):
    machine = jbod_60(tmp_path)
    (raw,) = await LocatedSource(Pool("/dev/mapper/mpath05"), machine.root).sample()
    back = raw_of(line_of(raw))
    assert leaves(back)["mpath05"].bay == "SLOT 05 A"
    (sample,) = decode(back)
    (shelf,) = sample.enclosures
    assert (shelf.name, shelf.slots[5].name, shelf.slots[5].disks) == (
        "LSI H4060-J",
        "SLOT 05 A",
        ("sdf", "sdbn"),
    )


async def test_a_machine_that_tells_nothing_leaves_samples_as_they_are(tmp_path):
    source = LocatedSource(Pool("/srv/file"), Machine(tmp_path).root)
    (raw,) = await source.sample()
    assert "disks" not in raw
    assert "enclosures" not in raw


async def test_reading_that_hangs_holds_up_no_sample(tmp_path, monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(located_source, "FIRST_PATIENCE", 0.01)
    monkeypatch.setattr(located_source, "locations", lambda _: over.wait(60))
    source = LocatedSource(Pool("/dev/sda"), expander_24(tmp_path).root)
    for _ in range(3):
        (raw,) = await source.sample()
        assert "disks" not in raw
    await source.aclose()
    over.set()


def test_a_disk_that_is_gone_is_still_told(tmp_path):
    machine = expander_24(tmp_path)
    paths = frozenset(("/dev/sda", "/dev/sdb"))
    before = surroundings(paths, Surroundings(), 0.0, machine.root)
    (tmp_path / "sys/class/block/sdb").unlink()
    (tmp_path / "sys/block/sdb").unlink()
    (tmp_path / "dev/sdb").unlink()
    after = surroundings(paths, before, 10.0, machine.root)
    assert after is not before
    assert after.disks["/dev/sdb"].bay == "Slot 01"
    assert after.names["/dev/sdb"] == ()


def test_nothing_is_read_again_while_no_disk_comes_or_goes(tmp_path):
    machine = expander_24(tmp_path)
    paths = frozenset(("/dev/sda",))
    first = surroundings(paths, Surroundings(), 0.0, machine.root)
    assert surroundings(paths, first, 10.0, machine.root) is first
    machine.alias("A0", "sda")
    assert surroundings(paths, first, 20.0, machine.root).disks["/dev/sda"].bay == "A0"
    assert surroundings(paths, first, located_source.READ_EVERY, machine.root) is not first


class Returning(Pool):
    """A pool whose disks come and go."""

    devices: dict[str, tuple[str, ...]]

    async def sample(self):
        (raw,) = await super().sample()
        return ({**raw, "devices": self.devices},)


async def test_a_disk_that_comes_is_known_at_once_though_it_is_looked_only_now_and_then(tmp_path):
    machine = expander_24(tmp_path)
    pool = Returning("/dev/sda", "/dev/sdb")
    pool.devices = {"/dev/sda": ("sda",)}
    gone = [tmp_path / "sys/class/block/sdb", tmp_path / "sys/block/sdb"]
    links = [link.readlink() for link in gone]
    for link in gone:
        link.unlink()
    source = LocatedSource(pool, machine.root, lambda: 0.0)
    (raw,) = await source.sample()
    assert not getattr(leaves(raw)["sdb"], "serial", "")
    for link, target in zip(gone, links, strict=True):
        link.symlink_to(target)
    pool.devices = {**pool.devices, "/dev/sdb": ("sdb",)}
    for _ in range(3000):
        (raw,) = await source.sample()
        if getattr(leaves(raw)["sdb"], "serial", ""):
            break
        await asyncio.sleep(0.01)
    assert leaves(raw)["sdb"].serial == "5000c50000000001"
    await source.aclose()


async def test_temperatures_come_with_a_later_sample(tmp_path):
    machine = expander_24(tmp_path)
    machine.write(machine.block("sda") / "queue", rotational=0)
    machine.write(
        machine.block("sda").parents[1] / "hwmon/hwmon3", name="drivetemp", temp1_input=41000
    )
    source = LocatedSource(Pool("/dev/sda"), machine.root)
    for _ in range(3000):
        (raw,) = await source.sample()
        if leaves(raw)["sda"].temperature == 41.0:
            break
        await asyncio.sleep(0.01)
    assert leaves(raw)["sda"].temperature == 41.0


def test_the_pools_own_record_tells_where_a_disk_was_that_is_gone(tmp_path):
    machine = expander_24(tmp_path)
    gone = {"path": "/dev/disk/by-id/x-part1", ENCLOSURE: "/sys/class/enclosure/0:0:24:0/Slot 03"}
    tree = {"children": [{"children": [gone, {"path": "/dev/sda"}]}]}
    hints = dict(recorded_slots({"t": 1.0, "libzfs": {"vdev_tree": tree}}))
    assert list(hints) == [gone["path"]]
    found = surroundings(frozenset(hints), Surroundings(), 0.0, machine.root, hints)
    assert found.disks[gone["path"]].slot == "Slot 03"
    assert not list(recorded_slots({"t": 1.0, "text": ""}))
