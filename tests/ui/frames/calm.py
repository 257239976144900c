"""Pools at rest, very large ones, and ones with odd names."""

from __future__ import annotations

from tests.ui.frames.making import MIB, NOW, TIB, disk, frame, group
from zconsole.pool.balance import Balance, VdevBalance
from zconsole.pool.health import Health
from zconsole.pool.model import Event, IoRates, Scan, Vdev
from zconsole.pool.redundancy import Redundancy
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import Frame, ScanView


def healthy() -> Frame:
    """Return an idle pool with a vdev of every class."""

    def mirror(index: int, *names: str, vclass: str = "normal") -> Vdev:
        disks = tuple(disk(name, vclass=vclass) for name in names)
        return group(
            f"mirror-{index}", "mirror", *disks, vclass=vclass, size_bytes=TIB, alloc_bytes=TIB // 3
        )

    root = group(
        "backup",
        "root",
        mirror(0, "sda", "sdb"),
        mirror(1, "sdc", "sdd"),
        mirror(2, "nvme0n1p1", "nvme1n1p1", vclass="special"),
        mirror(3, "nvme0n1p2", "nvme1n1p2", vclass="log"),
        disk("nvme2n1", vclass="cache"),
        disk("sde", vclass="spare", state="AVAIL"),
        size_bytes=2 * TIB,
        alloc_bytes=2 * TIB // 3,
    )
    quiet = IoRates(0, 0, 0, 0, None, 0.0)
    past = Scan(
        "scrub",
        "finished",
        start=NOW - 4 * 86400 - 15120,
        end=NOW - 4 * 86400,
        processed_bytes=0,
        errors=0,
    )
    vdevs = tuple(
        VdevBalance(f"mirror-{i}", "mirror", TIB, TIB // 3, 2 * TIB // 3, 1 / 3, 0.02, 0.0, 0.5)
        for i in range(2)
    )
    return frame(
        root,
        rates={v.name: quiet for v in root.walk()},
        scans=(
            ScanView(
                past,
                "scan:0",
                None,
                None,
                None,
                None,
                None,
                Estimate(None, None, None, "finished"),
                0,
            ),
        ),
        redundancy=(
            Redundancy("mirror-0", 1),
            Redundancy("mirror-1", 1),
            Redundancy("mirror-2", 1),
        ),
        balance=Balance(1 / 3, 0.0, 0.0, vdevs),
    )


def imbalance() -> Frame:
    """Return a pool whose vdevs are 93 % and 0.2 % full after one was added."""

    def raidz(index: int, alloc: float) -> Vdev:
        disks = (disk(f"sd{'abcdefgh'[index * 4 + i]}") for i in range(4))
        return group(
            f"raidz1-{index}", "raidz1", *disks, size_bytes=100 * TIB, alloc_bytes=int(alloc * TIB)
        )

    root = group("media", "root", raidz(0, 93.3), raidz(1, 0.2))
    write = IoRates(2 * MIB, 18 * MIB, 20, 180, 0.004, 0.2)
    vdevs = (
        VdevBalance(
            "raidz1-0",
            "raidz1",
            100 * TIB,
            int(93.3 * TIB),
            int(6.8 * TIB),
            0.933,
            0.41,
            46.5 * TIB,
            0.16,
        ),
        VdevBalance(
            "raidz1-1",
            "raidz1",
            100 * TIB,
            int(0.2 * TIB),
            int(99.8 * TIB),
            0.002,
            0.0,
            -46.5 * TIB,
            0.84,
        ),
    )
    return frame(
        root,
        rates={v.name: write for v in root.leaves()},
        redundancy=(Redundancy("raidz1-0", 1), Redundancy("raidz1-1", 1)),
        balance=Balance(0.4675, 0.931, 24.8 * TIB, vdevs),
    )


def many(leaves: int = 1000) -> Frame:
    """Return a pool of many mirrors, all busy."""
    mirrors = tuple(
        group(f"mirror-{i}", "mirror", disk(f"slot{2 * i:04}"), disk(f"slot{2 * i + 1:04}"))
        for i in range(leaves // 2)
    )
    root = group("huge", "root", *mirrors)
    rates = {
        v.name: IoRates(
            (i % 97) * MIB, (i % 31) * MIB, i % 500, i % 300, 0.001 * (i % 20), (i % 100) / 100
        )
        for i, v in enumerate(root.leaves())
    }
    return frame(root, rates=rates)


def odd_names() -> Frame:
    """Return a pool with names that have escapes, markup, wide characters and great length."""
    names = (
        "a\x1b[31mred\x07",
        "[bold]no[/bold]",
        "磁碟一號",
        "e\u0301\u202ereversed",
        "x" * 300,
        "two words",
        "\udcff\udcfe",
        "",
    )
    root = group(
        "p\x1b]0;title\x07",
        "root",
        group("mirror-0", "mirror", *(disk(n, note=f"was {n}") for n in names)),
    )
    return frame(
        root,
        message="\x1b[2J",
        health=Health("DEGRADED", "warning", ("\x1b[2Jodd",)),
        events=(Event(NOW, "x", "\x9b31m \u2028 bad", "warning", vdev="\x00"),),
        flags=("REPLAY",),
    )
