"""Probes one device with smartctl and the kernel's log; needs root.

Output: smartmontools 7.0 and later, ``smartctl -j -H -A`` (smartctl.cpp, ataprint.cpp,
nvmeprint.cpp, scsiprint.cpp).
"""

from __future__ import annotations

import asyncio
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
from zconsole.system.records import parse_json
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
        document = parse_json(text)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    counts: dict[str, Any] = {"passed": _passed(document)}
    counts |= _ata(document) | _nvme(document) | _scsi(document)
    counts |= {"wear": _wear(document), "spare": _spare(document)}
    counts["temperature"] = _number(document, "temperature", "current")
    found = SmartCounts(**counts)
    return None if found == SmartCounts() else found


WORN = ("life", "wear")
"""What names of attributes have that count down from 100 as flash wears. Their numbers (177, 202,
231, 233) mean something else on other models; the names are from smartctl's database."""


def _wear(document: Mapping[str, Any]) -> float | None:
    """The share used, by smartctl's own word (7.4 and later), else NVMe's, else an attribute's."""
    used = _number(document, "endurance_used", "current_percent")
    if used is None:
        used = _number(document, "nvme_smart_health_information_log", "percentage_used")
    if used is None:
        left = next(filter(None, map(_life_left, _rows(document))), None)
        used = None if left is None else 100 - left
    return None if used is None else max(0.0, used / 100)


def _life_left(row: Mapping[str, Any]) -> float | None:
    """Percent of its life that flash has left, if that is what the attribute counts."""
    name = str(row.get("name", "")).lower()
    value = row.get("value") if any(word in name for word in WORN) else None
    return float(value) if isinstance(value, int) and 0 < value <= 100 else None


def _spare(document: Mapping[str, Any]) -> float | None:
    left = _number(document, "spare_available", "current_percent")
    if left is None:
        left = _number(document, "nvme_smart_health_information_log", "available_spare")
    return None if left is None else min(1.0, max(0.0, left / 100))


def _number(document: Mapping[str, Any], table: str, name: str) -> float | None:
    """A number in one of the document's tables; None where there is no such thing."""
    found = document.get(table)
    value = found.get(name) if isinstance(found, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e6:
        return None
    return float(value)


def _rows(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The ATA attributes."""
    table = document.get("ata_smart_attributes")
    rows = table.get("table") if isinstance(table, dict) else ()
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _passed(document: Mapping[str, Any]) -> bool | None:
    status = document.get("smart_status")
    passed = status.get("passed") if isinstance(status, dict) else None
    return passed if isinstance(passed, bool) else None


def _ata(document: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in _rows(document):
        number = row.get("id")
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
