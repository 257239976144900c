"""Asking smartctl and the kernel's log about one device; for root, where they are there."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from zconsole.diagnosis.device_errors.faults import ProbeResults, SmartCounts
from zconsole.diagnosis.device_errors.smart import smart_counts
from zconsole.system.async_process import CommandRunner
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import ROOT
from zconsole.system.process import DeadlineError
from zconsole.zfs.sources.blockdev import node_name, slaves

DEADLINE = 3.0
LINES = 5
"""Kernel messages that are shown of one device, the newest."""


async def smart_of(runner: CommandRunner, device: str) -> SmartCounts | None:
    """A device's SMART counts; None without smartctl, permission or an answer in time.

    ``-n standby`` lets a disk that sleeps go on sleeping (smartctl(8)).
    """
    try:
        done = await runner.run(("smartctl", "-j", "-H", "-A", "-n", "standby", device), DEADLINE)
    except (DeadlineError, OSError):
        return None
    return smart_counts(done.stdout)


async def signs_of(
    runner: CommandRunner, path: str, since: float, root: Path = ROOT
) -> ProbeResults:
    """What the disk under a leaf counts, and what the kernel said of it since ``since``.

    Either is empty where it is not there, not permitted or not in time.
    """
    names = await in_daemon_thread(log_names, path, root)
    if not names:
        return ProbeResults()
    smart, lines = await asyncio.gather(
        smart_of(runner, f"/dev/{names[0]}"), kernel_messages(runner, names)
    )
    return ProbeResults(smart, tuple(line for line in lines if not _older(line, since)))


def _older(line: str, since: float) -> bool:
    """Whether a line of ``dmesg --time-format iso`` is of before ``since``; no if not known."""
    try:
        return datetime.fromisoformat(line.split(" ", 1)[0]).timestamp() < since
    except ValueError:
        return False


async def kernel_messages(runner: CommandRunner, names: Sequence[str]) -> tuple[str, ...]:
    """The newest kernel messages about the block devices of these names (``sda``, ``nvme0n1``).

    None where dmesg is kept from other users (kernel.dmesg_restrict).
    """
    try:
        done = await runner.run(("dmesg", "--time-format", "iso", "--level", LEVELS), DEADLINE)
    except (DeadlineError, OSError):
        return ()
    return messages_about(done.stdout, names)


def log_names(path: str, root: Path = ROOT) -> tuple[str, ...]:
    """What kernel messages call the disk under a leaf; () for a file.

    Its own name, its ATA port's and its SCSI address (``ata3``, ``2:0:0:0``); of a stacked device
    those of its first disk.
    """
    node = node_name(path, root)
    while node is not None and (below := slaves(node, root)):
        node = below[0]
    if node is None:
        return ()
    where = Path(os.path.realpath(root / "sys/class/block" / node))
    disk = where.parent.name if (where / "partition").exists() else node
    ports = [part for part in where.parts if _PORT.fullmatch(part)]
    return (disk, *ports)


_PORT = re.compile(r"ata\d+|\d+:\d+:\d+:\d+")
LEVELS = "emerg,alert,crit,err,warn"


def messages_about(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """The newest lines that name one of these devices, and not one whose name goes on."""
    wanted = "|".join(re.escape(name) for name in names if name)
    if not wanted:
        return ()
    pattern = re.compile(rf"(?<![\w/-])(?:/dev/)?(?:{wanted})(?:p?\d+|\.\d+)?(?![\w-])")
    return tuple(line.strip() for line in text.splitlines() if pattern.search(line))[-LINES:]
