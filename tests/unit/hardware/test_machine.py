"""Reading devices from fake trees of files."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import GIB, MODERN, TIB, at, disk, pool, top
from tests.unit.hardware.chassis import expander_24, jbod_60
from zconsole.actions import facts
from zconsole.actions.add import Layout, plan_add
from zconsole.actions.candidates import judge_device, judge_new, ranked
from zconsole.actions.clear import plan_clear
from zconsole.actions.facts import MachineFacts, label_of, with_smart
from zconsole.actions.growth import plan_attach
from zconsole.actions.plan import ActionPlan, Facts, Situation
from zconsole.actions.replace import plan_replace
from zconsole.actions.target import Swap, find
from zconsole.hardware import machine
from zconsole.hardware.device import Contents, Device
from zconsole.hardware.machine import contents_of, devices, disks, file_device
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.health import least_bytes
from zconsole.pool.model import Vdev
from zconsole.system.async_process import CommandRunner
from zconsole.system.process import Completed, DeadlineError
from zconsole.tunables.parameters import Parameters
from zconsole.zfs.sources.blockdev import node_name

BLANK = bytes(256 * 1024)


def image(**at: bytes) -> bytes:
    data = bytearray(BLANK)
    for place, text in at.items():
        offset = int(place[1:])
        data[offset : offset + len(text)] = text
    return bytes(data)


EXT = image(_1080=b"\x53\xef")


def label(state: int, name: bytes = b"old", txg: int = 7) -> bytes:
    """Return the start of a ZFS label's nvlist, as ``zdb -l`` reads it."""

    def pair(key: bytes, kind: int, value: bytes) -> bytes:
        return (
            len(key).to_bytes(4, "big")
            + key
            + bytes(-len(key) % 4)
            + kind.to_bytes(4, "big")
            + (1).to_bytes(4, "big")
            + value
        )

    text = len(name).to_bytes(4, "big") + name + bytes(-len(name) % 4)
    return image(
        _16384=b"\x01\x01\0\0"
        + bytes(8)
        + pair(b"name", 9, text)
        + pair(b"state", 8, state.to_bytes(8, "big"))
        + pair(b"txg", 8, txg.to_bytes(8, "big"))
    )


ZFS, EXPORTED, DESTROYED = label(0), label(1), label(2)
MBR = image(_450=b"\x83", _510=b"\x55\xaa")
GPT = image(_450=b"\xee", _510=b"\x55\xaa")


def gpt(*entries: tuple[int, int], sector: int = 512) -> bytes:
    """Return a partition table with these numbers and first sectors (UEFI, 5.3)."""
    data = bytearray(GPT)
    data[sector : sector + 8] = b"EFI PART"
    data[sector + 72 : sector + 88] = b"".join(
        number.to_bytes(length, "little") for number, length in ((2, 8), (128, 4), (128, 4))
    )
    for number, first in entries:
        entry = 2 * sector + 128 * (number - 1)
        data[entry : entry + 16] = b"T" * 16
        data[entry + 32 : entry + 40] = first.to_bytes(8, "little")
    return bytes(data)


class Tree:
    """A machine under a directory."""

    def __init__(self, root: Path) -> None:
        for place in ("sys/block", "run/udev/data", "dev/disk/by-id", "proc/self"):
            (root / place).mkdir(parents=True)
        (root / "proc/swaps").write_text("Filename Type Size Used Priority\n")
        (root / "proc/self/mountinfo").write_text("")
        self.root = root
        self.minor = 0

    def disk(
        self,
        name: str,
        data: bytes = BLANK,
        size: int = 2 * TIB,
        udev: str = "",
        parts: dict[str, bytes] | None = None,
    ) -> None:
        entry = self.root / "sys/block" / name
        for place in ("queue", "device", "holders"):
            (entry / place).mkdir(parents=True)
        (entry / "size").write_text(f"{size // 512}\n")
        (entry / "queue/logical_block_size").write_text("512\n")
        (entry / "queue/physical_block_size").write_text("4096\n")
        (entry / "queue/rotational").write_text("1\n")
        (entry / "device/model").write_text("LAB 2T   \n")
        self.node(name, data, entry, f"E:ID_SERIAL_SHORT=S-{name}\n{udev}")
        for part, contents in (parts or {}).items():
            (entry / part).mkdir()
            (entry / part / "partition").write_text(f"{part.lstrip(name)}\n")
            (entry / part / "size").write_text(f"{size // 2 // 512}\n")
            (entry / part / "holders").mkdir()
            (entry / part / "start").write_text(f"{2048 * int(part.lstrip(name))}\n")
            self.node(part, contents, entry / part, f"E:DEVTYPE=partition\n{udev}")

    def node(self, name: str, data: bytes, entry: Path, udev: str) -> None:
        self.minor += 1
        (self.root / "dev" / name).write_bytes(data)
        (entry / "dev").write_text(f"8:{self.minor}\n")
        (self.root / "run/udev/data" / f"b8:{self.minor}").write_text(udev)
        link = name if name.isalpha() else f"{name[:-1]}-part{name[-1]}"
        (self.root / "dev/disk/by-id" / f"ata-{link}").symlink_to(f"../../{name}")
        (self.root / "dev/disk/by-id" / f"wwn-{link}").symlink_to(f"../../{name}")

    def block(self, node: str, data: bytes = BLANK, size: int = 2 * TIB, **dm: str) -> Path:
        """Add a block device that is not a disk."""
        entry = self.root / "sys/block" / node
        for place in ("queue", "holders", *(("dm",) * bool(dm))):
            (entry / place).mkdir(parents=True)
        (entry / "size").write_text(f"{size // 512}\n")
        for key, value in dm.items():
            (entry / "dm" / key).write_text(f"{value}\n")
        self.listed(node, entry)
        (self.root / "dev" / node).write_bytes(data)
        return entry

    def listed(self, name: str, entry: Path) -> None:
        (self.root / "sys/class/block").mkdir(parents=True, exist_ok=True)
        (self.root / "sys/class/block" / name).symlink_to(entry)


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_a_blank_disk_with_everything_known(tree):
    tree.disk("sda")
    (device,) = disks(tree.root)
    assert device.path.endswith("by-id/ata-sda")
    assert (device.size, device.model, device.serial) == (2 * TIB, "LAB 2T", "S-sda")
    assert (device.logical, device.physical) == (512, 4096)
    assert (device.contents, device.mounted) == (Contents(), ())


def test_what_the_kernel_says_of_its_tracks_counts_for_each_partition(tree):
    tree.disk("sdb", parts={"sdb1": BLANK})
    tree.disk("sdc")
    (tree.root / "sys/block/sdb/queue/zoned").write_text("host-aware\n")
    (tree.root / "sys/block/sdc/device/model").write_text("WDC WD40EFAX-68J\n")
    aware, listed = devices(tree.root)
    assert aware.shingled == aware.parts[0].shingled == "shingled (SMR) by its own account"
    assert listed.shingled == "shingled (SMR) by WD's list"


def test_a_disk_is_found_among_thousands_of_devices(tree):
    tree.disk("sda")
    for number in range(4200):
        (tree.root / f"sys/block/dm-{number}").mkdir()
    assert [device.node for device in disks(tree.root)] == [str(tree.root / "dev/sda")]


def test_a_disk_is_unnamed_until_udev_has_finished_with_it(tree):
    tree.disk("sda")
    tree.disk("sdb", udev="E:ID_PROCESSING=1\n")
    tree.disk("sdc")
    known = tree.root / "run/udev/data"
    (known / "b8:3").unlink()
    assert [device.unnamed for device in disks(tree.root)] == [False, True, True]
    shutil.rmtree(known)
    assert not any(device.unnamed for device in disks(tree.root)), "nothing names them here"


def test_what_is_on_it_and_who_uses_it(tree):
    tree.disk("sda", EXT)
    tree.disk("sdb", GPT, parts={"sdb1": EXT})
    tree.disk("sdc", GPT, parts={"sdc1": ZFS})
    tree.disk("sdd", MBR)
    tree.disk("loop0")
    dev = tree.root / "dev"
    (tree.root / "proc/self/mountinfo").write_text(
        f"22 1 8:4 / /srv/x rw shared:1 - ext4 {dev}/sdb1 rw\n"
    )
    (tree.root / "proc/swaps").write_text(f"Filename\n{dev}/sdd partition 1 0 -2\n")
    (tree.root / "sys/block/sda/holders/dm-3").touch()
    a, b, c, d = disks(tree.root)
    assert (a.contents.names, a.holders) == (("ext2, 3 or 4",), ("dm-3",))
    assert (b.contents.names, b.mounted) == (("ext2, 3 or 4 on sdb1",), ("/srv/x",))
    assert c.contents == Contents((), "old")
    assert (d.contents.names, d.swap) == (("an MBR partition table",), True)


def test_unreadable_contents_are_said(tree):
    tree.disk("sda")
    (tree.root / "dev/sda").unlink()
    (tree.root / "run/udev/data/b8:1").unlink()
    assert disks(tree.root)[0].contents.unread
    assert disks(tree.root / "none") == ()


def test_candidates_that_cannot_work_come_last_with_the_reason(tree):
    tree.disk("sda", size=TIB // 2)
    tree.disk("sdb", EXT)
    tree.disk("sdc", size=8 * TIB)
    tree.disk("sdd")
    p = at(pool(top("raidz2", 0, 6))).pool
    target = find(p, "1000")
    assert target is not None
    found = ranked(p, target, Facts(devices=disks(tree.root)))
    assert [c.device.node[-3:] for c in found] == ["sdd", "sdc", "sda", "sdb"]
    assert [c.usable for c in found] == [True, True, False, False]
    assert "too small" in found[2].problems[0]
    assert "ext" in found[3].problems[0]


def test_a_file_as_device(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(ZFS)
    device = file_device(str(path))
    assert device is not None
    assert (device.kind, device.size, device.contents.zfs_pool) == ("file", len(ZFS), "old")
    assert file_device(str(tmp_path)) is None
    assert file_device(str(tmp_path / "none")) is None


@pytest.mark.parametrize(
    ("data", "names", "pool"),
    [
        (BLANK, (), None),
        (b"", (), None),
        (GPT, (), None),
        (EXT, ("ext2, 3 or 4",), None),
        (ZFS, (), "old"),
        (EXPORTED, (), "old"),
        (DESTROYED, (), None),
        (label(0, txg=0), (), None),  # detached
        (label(3, txg=0), (), "old"),  # a hot spare
        (label(0, b"a\x1bb"), (), "a\x1bb"),
        (image(_0=b"XFSB"), ("xfs",), None),
        (image(_0=b"LUKS\xba\xbe"), ("crypto_LUKS",), None),
        (image(_536=b"LVM2 001"), ("LVM2_member",), None),
        (image(_4086=b"SWAPSPACE2"), ("swap",), None),
        (MBR, ("an MBR partition table",), None),
        (image(_54=b"FAT16   ", _510=b"\x55\xaa"), ("vfat",), None),
        (image(_82=b"FAT32   ", _510=b"\x55\xaa"), ("vfat",), None),
    ],
)
def test_contents(tmp_path, data, names, pool):
    (tmp_path / "d").write_bytes(data)
    found = contents_of(tmp_path / "d")
    assert (found.names, found.zfs_pool, found.unread) == (names, pool, False)


@rows(
    "name, entries, sector, parts, unlisted",
    [
        ("sda", [(1, 2048), (9, 18432)], 512, [], (1, 9)),
        ("sdb", [(1, 2048), (2, 4096)], 512, ["sdb1"], (2,)),
        ("sdc", [(1, 4096)], 512, ["sdc1"], (1,)),  # it begins elsewhere now
        ("sdd", [(1, 256), (2, 512)], 4096, ["sdd1"], (2,)),
        ("sde", [(1, 2048)], 512, ["sde1"], ()),
        ("sdf", [], 512, ["sdf1"], ()),
    ],
)
def test_a_partition_table_that_the_kernel_has_not_read_is_in_doubt(
    tree, name, entries, sector, parts, unlisted
):
    # Another host with the same shelf partitioned the disk after this host had read it.
    tree.disk(name, gpt(*entries, sector=sector), parts=dict.fromkeys(parts, BLANK))
    device = disks(tree.root)[-1]
    assert device.unlisted == unlisted
    p = at(pool(top("raidz2", 0, 6))).pool
    target = find(p, "1000")
    assert target is not None
    candidate = judge_device(p, target, device, Facts(devices=(device,)))
    added = judge_new(p, device, 12)
    assert candidate.usable is added.usable is (not unlisted)
    for why in (*candidate.problems, *added.problems):
        assert "another host" in why
        assert f"partprobe {device.node}" in why


VFAT = image(_54=b"FAT16   ")


@pytest.fixture
def shared(tree):
    """A disk with a partition of every kind, of which only the third is free."""
    parts = dict(enumerate((VFAT, BLANK, BLANK, BLANK, BLANK, ZFS, EXT, BLANK), 1))
    table = gpt(*((n, 2048 * n) for n in parts))
    tree.disk("sda", table, parts={f"sda{n}": data for n, data in parts.items()})
    dev = tree.root / "dev"
    (tree.root / "proc/self/mountinfo").write_text(
        f"22 1 8:3 / / rw shared:1 - ext4 {dev}/disk/by-id/wwn-sda-part2 rw\n"
    )
    (tree.root / "proc/swaps").write_text(f"Filename\n{dev}/sda4 partition 1 0 -2\n")
    (tree.root / "sys/block/sda/sda5/holders/md0").touch()
    (tree.root / "sys/block/sda/sda8/ro").write_text("1\n")
    return tree


MEMBER = Vdev("log", "disk", guid="77", vclass="log", size_bytes=GIB)


def _part(tree: Tree, path: str) -> Situation:
    """Return a pool with a log on the disk's second partition; ``path`` is the candidate's."""
    log = MEMBER._replace(path=str(tree.root / "dev/disk/by-id/ata-sda-part2"))
    facts = replace(MODERN, devices=disks(tree.root))
    assert facts.named(path) is not None
    return at(pool(top("mirror", 0, 2), log), facts)


@rows("link", ["dev/disk/by-id/ata-sda-part{}", "dev/sda{}"])
@rows(
    "number, problem",
    [
        (1, "holds vfat; "),
        (2, "in this pool already, as log"),
        (3, ""),
        (4, "used as swap"),
        (5, "in use by md0"),
        (6, "has a label of pool old"),
        (7, "holds ext2, 3 or 4; "),
        (8, "read-only"),
    ],
)
def test_a_partition_is_judged_by_itself(shared, link, number, problem):
    path = str(shared.root / link.format(number))
    s = _part(shared, path)
    plans = (plan_replace(s, Swap("1000", path)), plan_add(s, Layout("log"), (path,)))
    for plan in (*plans, plan_attach(s, "1000", path)):
        why = plan.refused or ""
        assert why.startswith(f"{path}: {problem}") if problem else not why, why
        if "wipefs" in why:
            assert f"wipefs --all {shared.root}/dev/sda{number})" in why
    device = s.facts.named(path)
    assert device is not None
    assert (device.size, device.serial, device.number) == (TIB, "S-sda", str(number))
    assert device.mounted == (("/",) if number == 2 else ())
    whole = str(shared.root / "dev/sda")
    assert plan_replace(s, Swap("1000", whole)).refused is not None


def test_a_partition_is_in_use_where_all_of_its_disk_is(shared):
    path, dev = str(shared.root / "dev/sda3"), shared.root / "dev"

    def why() -> str:
        return plan_replace(_part(shared, path), Swap("1000", path)).refused or ""

    assert not why()
    (shared.root / "sys/block/sda/holders/dm-3").touch()
    assert why() == f"{path}: in use by dm-3"
    (shared.root / "sys/block/sda/holders/dm-3").unlink()
    (shared.root / "proc/self/mountinfo").write_text(f"2 1 8:1 / /x rw - ext4 {dev}/sda rw\n")
    assert why() == f"{path}: mounted on /x"
    (shared.root / "proc/self/mountinfo").write_text("")
    (shared.root / "dev/sda").write_bytes(ZFS)
    assert why().startswith(f"{path}: has a label of pool old")
    (shared.root / "dev/sda").write_bytes(gpt((1, 2048), (11, 99999)))
    assert "another host" in why()


def test_partitions_of_one_disk_are_no_redundancy_for_each_other(shared):
    (shared.root / "proc/swaps").write_text("Filename\n")
    third, fourth, whole = (str(shared.root / "dev" / name) for name in ("sda3", "sda4", "sda"))
    s = _part(shared, third)
    assert plan_add(s, Layout("log"), (third, fourth)).refused is None
    mirror = plan_add(s, Layout("log", "mirror"), (third, fourth)).refused
    assert mirror is not None
    assert mirror.startswith("on one disk: ")
    assert plan_add(s, Layout("log"), (third, whole)).refused == "a device is named twice"
    ids = str(shared.root / "dev/disk/by-id/ata-sda-part3")
    assert plan_add(s, Layout("log"), (third, ids)).refused == "a device is named twice"
    beside = plan_attach(s, "77", third)
    assert beside.refused is None
    assert "on one disk with log: both fail with it" in beside.warnings
    a, b = (MEMBER._replace(name=n, guid=n, path=p) for n, p in (("8", fourth), ("9", "/dev/x")))
    paired = replace(s, pool=pool(Vdev("mirror-1", "mirror", guid="5", children=(a, b))))
    why = plan_replace(paired, Swap("9", third)).refused
    assert why == f"{third}: on one disk with 8: mirror-1 would lose both with it"


@pytest.fixture
def stacked(tree):
    """A machine with stacked devices."""
    tree.disk("sda")
    dev = tree.root / "dev"
    for folder in ("mapper", "vg", "disk/by-uuid"):
        (dev / folder).mkdir(exist_ok=True)
    tree.block("dm-0", uuid="CRYPT-LUKS2-0-luks-b", name="luks-b")
    (dev / "mapper/luks-b").symlink_to("../dm-0")
    held = tree.block("dm-1", uuid="LVM-1", name="vg-pool")
    (held / "holders/dm-9").touch()
    tree.block("dm-2", uuid="LVM-2", name="vg-srv")
    (dev / "vg/srv").symlink_to("../dm-2")
    tree.block("dm-3", uuid="LVM-3", name="vg-swap")
    tree.block("dm-4", ZFS, uuid="LVM-4", name="vg-zfs")
    tree.block("dm-5", gpt((1, 2048)), uuid="LVM-5", name="vg-guest")
    tree.block("dm-6", size=TIB // 2, uuid="LVM-6", name="vg-small")
    tree.block("dm-7", uuid="mpath-7", name="mpath7")
    tree.block("md0", EXT)
    array = tree.block("md1", gpt((1, 2048), (2, 4096)))
    for number, data in ((1, VFAT), (2, BLANK)):
        part = array / f"md1p{number}"
        part.mkdir()
        for file, value in (("partition", number), ("start", 2048 * number), ("size", TIB // 512)):
            (part / file).write_text(f"{value}\n")
        (dev / part.name).write_bytes(data)
        tree.listed(part.name, part)
    (dev / "disk/by-uuid/aa").symlink_to("../../md1p2")
    tree.block("loop0")
    tree.block("loop7", size=0)
    tree.block("zd0")
    tree.block("sr0")
    (dev / "null").touch()
    (tree.root / "proc/self/mountinfo").write_text(
        f"22 1 8:3 / /srv rw shared:1 - ext4 {dev}/mapper/vg-srv rw\n"
        f"23 1 8:4 / /loop rw shared:1 - ext4 {dev}/loop0 rw\n"
    )
    (tree.root / "proc/swaps").write_text(f"Filename\n{dev}/dm-3 partition 1 0 -2\n")
    return tree


def facts_of(runner: CommandRunner, root: Path) -> MachineFacts:
    """Return the facts about a machine below a root directory."""
    return MachineFacts(runner, Parameters(root / "sys/module/zfs"), partial(devices, root))


@rows(
    "path, problem",
    [
        ("/dev/mapper/luks-b", ""),
        ("/dev/dm-0", ""),
        ("/dev/dm-1", "in use by dm-9"),
        ("/dev/dm-2", "mounted on /srv"),
        ("/dev/vg/srv", "mounted on /srv"),
        ("/dev/dm-3", "used as swap"),
        ("/dev/dm-4", "has a label of pool old"),
        ("/dev/dm-5", "may be another host's disk"),
        ("/dev/dm-6", "too small"),
        ("/dev/dm-7", " is not a device"),  # a disk that was pulled
        ("/dev/md0", "holds ext2, 3 or 4; "),
        ("/dev/md1", "holds vfat on md1p1; "),
        ("/dev/md1p1", "holds vfat; "),
        ("/dev/md1p2", ""),
        ("/dev/disk/by-uuid/aa", ""),
        ("/dev/loop0", "mounted on /loop"),
        ("/dev/loop7", " is not a device"),
        ("/dev/zd0", " is not a device"),
        ("/dev/sr0", " is not a device"),
        ("/dev/null", " is not a device"),
        ("/dev/nothing", " is not a device"),
        ("/dev", " is not a device"),
    ],
)
@pytest.mark.slow
async def test_a_typed_block_device_is_judged_as_a_disk_is(stacked, path, problem):
    facts = await facts_of(Answers(), stacked.root)(pool(top("mirror", 0, 2)), False, (path,))
    s = at(pool(top("mirror", 0, 2)), replace(MODERN, devices=facts.devices))
    for plan in (plan_replace(s, Swap("1000", path)), plan_attach(s, "1000", path)):
        why = plan.refused or ""
        assert why.removeprefix(f"{path}: ").removeprefix(path).startswith(problem), why
        assert bool(why) is bool(problem)
    assert [d.node for d in disks(stacked.root)] == [str(stacked.root / "dev/sda")]
    assert all(d.kind == "disk" or problem != " is not a device" for d in facts.devices)


@rows(
    "path, leaf, serial",
    [
        ("/dev/dm-8", "dev/disk/by-id/ata-sda-part1", ""),  # LVM on LUKS on a partition
        ("/dev/dm-8", "dev/sda1", ""),
        ("/dev/dm-8", "dev/mapper/other", "S-sda"),  # the leaf is also LUKS on the same disk
        ("/dev/md2", "dev/sda1", ""),
    ],
)
@pytest.mark.slow
async def test_a_stacked_device_on_the_disk_of_a_sibling_is_no_redundancy(
    tmp_path_factory, path, leaf, serial
):
    tree = Tree(tmp_path_factory.mktemp("machine"))
    for name in ("sda", "sdb"):
        tree.disk(name, parts={f"{name}1": BLANK, f"{name}2": BLANK})
        for node, entry in ((name, name), (f"{name}2", f"{name}/{name}2")):
            tree.listed(node, tree.root / "sys/block" / entry)
    made = {"dm-9": ["sda2"], "dm-8": ["dm-9"], "md2": ["sda2", "sdb2"], "dm-7": ["sdb2"]}
    for node, slaves in made.items():
        entry = tree.block(node)
        for each in slaves:
            (entry / "slaves" / each).mkdir(parents=True)
    on_it = disk("here", 8)._replace(
        path=str(tree.root / leaf), disk=LeafDisk(serial=serial) if serial else None
    )
    p = pool(Vdev("mirror-1", "mirror", guid="5", children=(on_it, disk("there", 9))))

    async def plans(new: str) -> tuple[ActionPlan, ActionPlan]:
        facts = await facts_of(Answers(), tree.root)(p, False, (new,))
        s = at(p, replace(MODERN, devices=facts.devices))
        return plan_replace(s, Swap("9", new)), plan_attach(s, "8", new)

    replaced, attached = await plans(path)
    assert replaced.refused == f"{path}: on one disk with here: mirror-1 would lose both with it"
    assert "on one disk with here: both fail with it" in attached.warnings
    replaced, attached = await plans("/dev/dm-7")
    assert (replaced.refused, attached.refused) == (None, None)
    assert not any("one disk" in text for text in (*replaced.warnings, *attached.warnings))
    pair = ("/dev/dm-8", "/dev/md2")
    found = (await facts_of(Answers(), tree.root)(p, False, pair)).devices
    added = plan_add(at(p, replace(MODERN, devices=found)), Layout("log", "mirror"), pair)
    assert (added.refused or "").startswith("on one disk: ")


def test_a_character_device_is_no_block_device_of_the_same_number(tmp_path):
    numbers = tmp_path / "sys/dev/block"
    numbers.mkdir(parents=True)
    (tmp_path / "sys/class/block").mkdir(parents=True)
    null = Path("/dev/null").stat().st_rdev
    (tmp_path / "sys/block/loop3").mkdir(parents=True)
    (numbers / f"{os.major(null)}:{os.minor(null)}").symlink_to("../../block/loop3")
    (tmp_path / "dev").symlink_to("/dev")
    assert node_name("/dev/null", tmp_path) is None


@rows("offset", [256 << 10, 512 << 10, 768 << 10])
def test_a_pools_label_is_found_where_the_first_was_wiped(tmp_path, offset):
    # Two labels are at the beginning and two at the end (vdev_label_offset, vdev_label.c).
    data = bytearray(1 << 20)
    data[offset : offset + len(ZFS)] = ZFS
    device = tmp_path / "d"
    device.write_bytes(data + bytes(4096))
    assert contents_of(device).zfs_pool == "old"
    # If there is a partition table, zpool checks only the partitions (check_disk, zpool_vdev_os.c).
    data[: len(GPT)] = gpt((1, 2048))
    device.write_bytes(data)
    assert contents_of(device).zfs_pool is None
    # A device that is free according to its first label is free.
    data[: len(GPT)] = DESTROYED
    device.write_bytes(data)
    assert contents_of(device).zfs_pool is None


class Answers:
    """Answers commands by their first words."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.asked: list[str] = []

    async def run(self, argv, _deadline):
        self.asked.append(argv[0])
        if argv[0] not in self.texts:
            raise FileNotFoundError(2, argv[0])
        return Completed(tuple(argv), 0, self.texts[argv[0]], "")


async def test_facts_are_gathered(tree):
    tree.disk("sda")
    module = tree.root / "sys/module/zfs/parameters"
    module.mkdir(parents=True)
    (module / "zfs_resilver_defer_percent").write_text("10\n")
    (module.parent / "version").write_text("2.3.9-1\n")
    runner = Answers(zpool="feature@resilver_defer\tenabled\nautoexpand\toff\n")
    found = await facts_of(runner, tree.root)(pool(top("mirror", 0, 2)), False)
    assert found.version == (2, 3, 9)
    assert found.has("resilver_defer") is True
    assert found.has("device_rebuild") is None
    assert found.properties["autoexpand"] == "off"
    assert found.parameters == {"zfs_resilver_defer_percent": 10}
    assert len(found.devices) == 1


@pytest.mark.slow
async def test_a_reading_that_hangs_is_not_begun_a_second_time(tree, monkeypatch):
    begun, over = [], threading.Event()

    def read(_):
        begun.append(1)
        over.wait(60)
        return ()

    monkeypatch.setattr(facts, "DISKS", 0.05)
    machine_facts = MachineFacts(Answers(), Parameters(tree.root), read)
    asked = 0
    while not begun or asked < 3:
        found = await machine_facts(pool(top("mirror", 0, 2)), False)
        assert found.devices == ()
        asked += 1
    assert len(begun) == 1
    monkeypatch.setattr(facts, "DISKS", 30.0)
    over.set()
    await machine_facts(pool(top("mirror", 0, 2)), False)
    assert len(begun) == 2, "what hung is never the answer to a later question"


async def test_a_suspended_pool_is_asked_nothing_but_labels_are_read(tree):
    runner = Answers(zdb="    version: 5000\n    pool_guid: 42\n")
    found = await facts_of(runner, tree.root)(pool(top("mirror", 0, 2)), True)
    assert set(runner.asked) == {"zdb"}
    assert found.labels == {"1000": "42", "1001": "42"}
    assert label_of("failed to unpack label 0\n") == ""


class Silent:
    """A zdb that gives no answer in time."""

    async def run(self, argv, _deadline):
        raise DeadlineError(f"{argv[0]} did not answer")


@rows("runner", [Answers(), Silent()])
async def test_a_zdb_that_tells_nothing_keeps_nobody_from_resuming_a_pool(runner, tree):
    """A label that was not read gives no reason to refuse."""
    stuck = pool(top("mirror", 0, 2))
    found = await facts_of(runner, tree.root)(stuck, True)
    assert found.labels == {}
    plan = plan_clear(at(stuck, found, suspended=True))
    assert plan.refused is None
    assert any("zdb" in text for text in plan.warnings)


@pytest.fixture
def hung(monkeypatch):
    """Paths of devices that do not answer before the test is over."""
    paths, over = [], threading.Event()

    def read(path):
        if str(path) in paths:
            over.wait(60)
        return contents_of(path)

    monkeypatch.setattr(machine, "contents_of", read)
    monkeypatch.setattr(machine, "HEADS", 0.4)
    yield paths
    over.set()


@pytest.mark.slow
async def test_disks_that_hang_keep_nobody_from_acting(tree, hung):
    for name in ("sda", "sdb", "sdc"):
        tree.disk(name)
    hung += [str(tree.root / "dev/sda"), str(tree.root / "dev/sdb")]
    began = time.monotonic()
    found = await facts_of(Answers(), tree.root)(pool(top("mirror", 0, 2)), True)
    assert time.monotonic() - began < 30.0
    assert [d.node.rpartition("/")[2] for d in found.devices] == ["sda", "sdb", "sdc"]
    assert {d.serial for d in found.devices} == {"S-sda", "S-sdb", "S-sdc"}


@pytest.mark.slow
async def test_a_file_on_a_server_that_hangs_keeps_nobody_from_acting(tree, hung, tmp_path):
    tree.disk("sda")
    image = tmp_path / "hung.img"
    image.write_bytes(BLANK)
    hung.append(str(image))
    seen = await facts_of(Answers(), tree.root)(pool(top("mirror", 0, 2)), False, (str(image),))
    assert [(d.kind, d.contents.unread) for d in seen.devices] == [("disk", False), ("file", True)]


@pytest.mark.slow
async def test_labels_are_read_side_by_side(tree):
    class Slow(Answers):
        running = most = 0

        async def run(self, argv, deadline):
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(0.2)
            self.running -= 1
            return await super().run(argv, deadline)

    runner = Slow(zdb="    pool_guid: 42\n")
    found = await facts_of(runner, tree.root)(pool(top("raidz2", 0, 10)), True)
    assert len(found.labels) == 10
    assert runner.most > 2


@rows(
    "text, temperature, failure",
    [
        ('{"temperature": {"current": 41}}', 41.0, ""),
        ('{"smart_status": {"passed": true}}', None, ""),
        ('{"smart_status": {"passed": false}}', None, "fails by its own SMART: FAILS"),
        ("", None, ""),
        ("[]", None, ""),
        *(
            (f'{{"temperature": {{"current": {current}}}}}', None, "")
            for current in ("9" * 400, "9" * 5000, "NaN", "1e999", '"41"', "[" * 100_000)
        ),
    ],
)
async def test_what_smartctl_tells_of_a_disk(text, temperature, failure):
    (found,) = await with_smart(Answers(smartctl=text), (Device("/dev/sda", "/dev/sda", ()),))
    assert (found.temperature, found.failure) == (temperature, failure)


def test_a_disk_of_the_siblings_size_fits_as_they_did():
    p = at(pool(top("raidz2", 0, 6))).pool
    target = find(p, "1000")
    assert target is not None
    least = least_bytes(target.top)
    assert least is not None
    whole = least + (2 << 20)
    sibling = Device("/dev/disk/by-id/d01", "/dev/sdb", ("/dev/disk/by-id/d01-part1",), size=whole)
    new = Device("/dev/disk/by-id/new", "/dev/sdx", size=whole)
    assert judge_device(p, target, new, Facts(devices=(sibling, new))).cautions == ()
    assert "slightly" in judge_device(p, target, new, Facts(devices=(new,))).cautions[0]


def test_each_disk_of_a_shelf_has_its_bay(tmp_path):
    machine = expander_24(tmp_path)
    slots = tmp_path / "sys/class/enclosure/0:0:24:0"
    (slots / "Slot 00/locate").unlink()
    found = disks(machine.root)
    second = found[1]
    assert (found[0].locate, second.locate) == (None, str((slots / "Slot 01/locate").resolve()))
    assert (second.enclosure, second.slot, second.bay) == (
        "0x500304801ee3ee7f",
        "Slot 01",
        "Slot 01",
    )
    assert second.port == "pci-0000:01:00.0-sas-exp0x500304801ee3ee7f-phy1-lun-0"
    assert len({each.bay for each in found}) == len(found) == 21


@pytest.mark.slow
def test_a_disk_with_two_paths_is_one_device(tmp_path):
    machine = jbod_60(tmp_path)
    part = tmp_path / "sys/devices/virtual/block/dm-90"
    machine.write(part / "dm", uuid="part1-mpath-mpath05", name="mpath05-part1")
    (part / "holders/dm-91").mkdir(parents=True)
    machine.link("sys/block/dm-90", part)
    (machine.block("dm-5") / "holders/dm-90").mkdir()
    (tmp_path / "dev/dm-90").write_bytes(EXT)
    (tmp_path / "dev/dm-5").write_bytes(gpt((1, 2048), (2, 4096)))
    machine.link("dev/mapper/mpath05-part1", tmp_path / "dev/dm-90")
    found = disks(tmp_path)
    assert len(found) == len({each.bay for each in found}) == 58
    (device,) = (each for each in found if each.node.endswith("/dm-5"))
    assert device.path == str(tmp_path / "dev/mapper/mpath05")
    assert (device.bay, device.serial, device.model) == ("SLOT 05 A", "5000cca000000005", "DISK 2T")
    assert device.contents.names == ("ext2, 3 or 4 on dm-90",)
    assert device.holders == ("dm-91",)
    assert ([part.number for part in device.parts], device.unlisted) == (["1"], (2,))
    assert device.parts[0].path == str(tmp_path / "dev/mapper/mpath05-part1")
    assert str(tmp_path / "dev/mapper/mpath05-part1") in device.aliases
    assert device.locate is not None


@pytest.mark.slow
def test_a_joining_device_without_a_path_is_a_disk_that_was_pulled(tmp_path):
    # multipathd keeps a map as long as it is open, and ZFS has it open.
    machine = jbod_60(tmp_path)
    for path in (machine.block("dm-5") / "slaves").iterdir():
        path.unlink() if path.is_symlink() else path.rmdir()
    assert not any(each.node.endswith("/dm-5") for each in disks(tmp_path))


def test_a_serial_number_that_several_disks_have_tells_none_of_them(tree):
    # Some USB adapters report one serial for all; units of one disk share it too, but have a WWN
    # each.
    tree.disk("sda", udev="E:ID_SERIAL_SHORT=0123456789\n")
    tree.disk("sdb", udev="E:ID_SERIAL_SHORT=0123456789\n")
    for name in ("sdc", "sdd"):
        tree.disk(name, udev=f"E:ID_SERIAL_SHORT=TWO\nE:ID_WWN=0x5000-{name}\n")
    assert [d.serial for d in disks(tree.root)] == ["", "", "TWO", "TWO"]
