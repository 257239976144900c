"""Probes one device with smartctl and the kernel's log; needs root.

Output: smartmontools 7.0 and later, ``smartctl -j -H -A`` (smartctl.cpp, ataprint.cpp,
nvmeprint.cpp, scsiprint.cpp).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from zconsole.diagnosis.device_errors.faults import ProbeResults, SmartCounts
from zconsole.system.async_process import CommandRunner
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import ROOT
from zconsole.system.process import DeadlineError
from zconsole.zfs.sources.blockdev import node_name, slaves

DEADLINE = 3.0
LINES = 5
"""Newest kernel messages shown for one device."""


async def smart_of(runner: CommandRunner, device: str) -> SmartCounts | None:
    """A device's SMART counts; None without smartctl, permission or an answer in time.

    ``-n standby`` doesn't wake a sleeping disk (smartctl(8)).
    """
    try:
        done = await runner.run(("smartctl", "-j", "-H", "-A", "-n", "standby", device), DEADLINE)
    except (DeadlineError, OSError):
        return None
    return smart_counts(done.stdout)


async def signs_of(
    runner: CommandRunner, path: str, since: float, root: Path = ROOT
) -> ProbeResults:
    """SMART counts of the disk under a leaf, and the kernel's messages about it since ``since``.

    Either is empty if missing, not permitted or too late.
    """
    names = await in_daemon_thread(log_names, path, root)
    if not names:
        return ProbeResults()
    smart, lines = await asyncio.gather(
        smart_of(runner, f"/dev/{names[0]}"), kernel_messages(runner, names)
    )
    return ProbeResults(smart, tuple(line for line in lines if not _older(line, since)))


def _older(line: str, since: float) -> bool:
    """Whether a line of ``dmesg --time-format iso`` is older than ``since``; no if unknown."""
    try:
        return datetime.fromisoformat(line.split(" ", 1)[0]).timestamp() < since
    except ValueError:
        return False


async def kernel_messages(runner: CommandRunner, names: Sequence[str]) -> tuple[str, ...]:
    """The newest kernel messages about the block devices of these names (``sda``, ``nvme0n1``).

    Empty where dmesg is restricted to root (kernel.dmesg_restrict).
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
    """The newest lines that name one of these devices exactly."""
    wanted = "|".join(re.escape(name) for name in names if name)
    if not wanted:
        return ()
    pattern = re.compile(rf"(?<![\w/-])(?:/dev/)?(?:{wanted})(?:p?\d+|\.\d+)?(?![\w-])")
    return tuple(line.strip() for line in text.splitlines() if pattern.search(line))[-LINES:]


ATTRIBUTES = {5: "reallocated", 197: "pending", 198: "uncorrectable", 199: "crc"}


def smart_counts(text: str) -> SmartCounts | None:
    """The counts in ``smartctl -j`` output; None without any."""
    try:
        document = json.loads(text)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    counts: dict[str, Any] = {"passed": _passed(document)}
    counts |= _ata(document) | _nvme(document) | _scsi(document)
    found = SmartCounts(**counts)
    return None if found == SmartCounts() else found


def _passed(document: Mapping[str, Any]) -> bool | None:
    status = document.get("smart_status")
    passed = status.get("passed") if isinstance(status, dict) else None
    return passed if isinstance(passed, bool) else None


def _ata(document: Mapping[str, Any]) -> dict[str, int]:
    table = document.get("ata_smart_attributes")
    rows = table.get("table", ()) if isinstance(table, dict) else ()
    found: dict[str, int] = {}
    for row in rows if isinstance(rows, list) else ():
        number = row.get("id") if isinstance(row, dict) else None
        name = ATTRIBUTES.get(number) if isinstance(number, int) else None
        raw = row.get("raw") if name else None
        value = raw.get("value") if isinstance(raw, dict) else None
        if name and isinstance(value, int):
            found[name] = value
    return found


def _nvme(document: Mapping[str, Any]) -> dict[str, int]:
    log = document.get("nvme_smart_health_information_log")
    errors = log.get("media_errors") if isinstance(log, dict) else None
    return {"uncorrectable": errors} if isinstance(errors, int) else {}


def _scsi(document: Mapping[str, Any]) -> dict[str, int]:
    grown = document.get("scsi_grown_defect_list")
    return {"reallocated": grown} if isinstance(grown, int) else {}
