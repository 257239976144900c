"""Asking smartctl and the kernel's log about one device; for root, where they are there."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from zconsole.errorwatch.smart import smart_counts
from zconsole.errorwatch.trouble import SmartCounts
from zconsole.sources.blockdev import node_name
from zconsole.sources.kstat import ROOT
from zconsole.sources.runner import DeadlineError, Runner

DEADLINE = 3.0
LINES = 5
"""Kernel messages that are shown of one device, the newest."""


async def smart_of(runner: Runner, device: str) -> SmartCounts | None:
    """A device's SMART counts; None without smartctl, permission or an answer in time.

    ``-n standby`` lets a disk that sleeps go on sleeping (smartctl(8)).
    """
    try:
        done = await runner.run(("smartctl", "-j", "-H", "-A", "-n", "standby", device), DEADLINE)
    except (DeadlineError, OSError):
        return None
    return smart_counts(done.stdout)


async def kernel_messages(runner: Runner, names: Sequence[str]) -> tuple[str, ...]:
    """The newest kernel messages about the block devices of these names (``sda``, ``nvme0n1``)."""
    try:
        done = await runner.run(("dmesg", "--time-format", "iso", "--level", LEVELS), DEADLINE)
    except (DeadlineError, OSError):
        return ()
    return messages_about(done.stdout, names)


def log_names(path: str, root: Path = ROOT) -> tuple[str, ...]:
    """What kernel messages call the disk under a leaf: its own name, and its ATA port's."""
    node = node_name(path, root)
    if node is None:
        return ()
    where = Path(os.path.realpath(root / "sys/class/block" / node))
    disk = where.parent.name if (where / "partition").exists() else node
    ports = [part for part in where.parts if re.fullmatch(r"ata\d+", part)]
    return (disk, *ports)


LEVELS = "emerg,alert,crit,err,warn"


def messages_about(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """The newest lines that name one of these devices, and not one whose name goes on."""
    wanted = "|".join(re.escape(name) for name in names if name)
    if not wanted:
        return ()
    pattern = re.compile(rf"(?<![\w/-])(?:/dev/)?(?:{wanted})(?:p?\d+|\.\d+)?(?![\w-])")
    return tuple(line.strip() for line in text.splitlines() if pattern.search(line))[-LINES:]
