"""Probes of one device with smartctl and the kernel's log; they need root.

Format: output of ``smartctl -j -H -A`` of smartmontools 7.0 and later (smartctl.cpp, ataprint.cpp,
nvmeprint.cpp, scsiprint.cpp).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from zconsole.diagnosis.device_errors.faults import ProbeResults, SmartCounts
from zconsole.hardware.location import disks_below
from zconsole.system.async_process import CommandRunner
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import ROOT
from zconsole.system.patient import NotAskedError
from zconsole.system.process import DeadlineError
from zconsole.system.records import parse_json

DEADLINE = 3.0
LINES = 5
"""Most kernel messages to show for one device, the newest ones."""


async def smart_of(runner: CommandRunner, device: str) -> SmartCounts | None:
    """Read a device's SMART counts; None without smartctl, permission or an answer in time.

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
    """Read SMART counts of the disk under a leaf, and kernel messages about it since ``since``.

    Either is empty if unavailable, not permitted or too late. ``since`` is in epoch seconds.
    """
    try:
        names = await in_daemon_thread(log_names, path, root)
    except NotAskedError:
        return ProbeResults()
    if not names:
        return ProbeResults()
    smart, lines = await asyncio.gather(
        smart_of(runner, f"/dev/{names[0]}"), kernel_messages(runner, names)
    )
    return ProbeResults(smart, tuple(line for line in lines if not _older(line, since)))


def _older(line: str, since: float) -> bool:
    """Whether a line of ``dmesg --time-format iso`` is older than ``since``; False if unknown."""
    try:
        return datetime.fromisoformat(line.split(" ", 1)[0]).timestamp() < since
    except ValueError:
        return False


async def kernel_messages(runner: CommandRunner, names: Sequence[str]) -> tuple[str, ...]:
    """Read the newest kernel messages about block devices by name (``sda``, ``nvme0n1``).

    Empty if dmesg is restricted to root (kernel.dmesg_restrict).
    """
    try:
        done = await runner.run(("dmesg", "--time-format", "iso", "--level", LEVELS), DEADLINE)
    except (DeadlineError, OSError):
        return ()
    return messages_about(done.stdout, names)


def log_names(path: str, root: Path = ROOT) -> tuple[str, ...]:
    """Return the names of the disk under a leaf in kernel messages; () for a file.

    Its own name, its ATA port and its SCSI address (``sda``, ``ata3``, ``2:0:0:0``); for a stacked
    device those of its first disk.
    """
    below = disks_below(path, root)
    if not below:
        return ()
    disk = below[0][:2][-1]  # for a multipath disk the first path, which follows its own name
    where = os.path.realpath(root / "sys/class/block" / disk)
    return (disk, *filter(_PORT.fullmatch, where.split("/")))


_PORT = re.compile(r"ata\d+|\d+:\d+:\d+:\d+")
LEVELS = "emerg,alert,crit,err,warn"


def messages_about(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the newest lines that mention one of these names as a whole word."""
    wanted = "|".join(re.escape(name) for name in names if name)
    if not wanted:
        return ()
    pattern = re.compile(rf"(?<![\w/-])(?:/dev/)?(?:{wanted})(?:p?\d+|\.\d+)?(?![\w-])")
    return tuple(line.strip() for line in text.splitlines() if pattern.search(line))[-LINES:]


ATTRIBUTES = {5: "reallocated", 197: "pending", 198: "uncorrectable", 199: "crc"}
_NVME = "nvme_smart_health_information_log"


def smart_counts(text: str) -> SmartCounts | None:
    """Parse the output of ``smartctl -j``; None if it has no counts."""
    try:
        document = parse_json(text)
    except ValueError:
        return None
    table = _at(document, "ata_smart_attributes", "table")
    attributes = table if isinstance(table, list) else []
    # ATA, NVMe and SCSI disks report their counts in different places.
    counts: list[tuple[str, object]] = [
        (ATTRIBUTES[number], _at(row, "raw", "value"))
        for row in attributes
        if isinstance(number := _at(row, "id"), int) and number in ATTRIBUTES
    ]
    counts.append(("uncorrectable", _at(document, _NVME, "media_errors")))
    counts.append(("reallocated", _at(document, "scsi_grown_defect_list")))
    passed = _at(document, "smart_status", "passed")
    spare = _first(document, ("spare_available", "current_percent"), (_NVME, "available_spare"))
    found = SmartCounts(
        **{name: count for name, count in counts if isinstance(count, int)},
        passed=passed if isinstance(passed, bool) else None,
        wear=_wear(document, attributes),
        spare=None if spare is None else min(1.0, max(0.0, spare / 100)),
        temperature=_first(document, ("temperature", "current")),
    )
    return None if found == SmartCounts() else found


WORN = ("life", "wear")
"""Words in the names of ATA attributes that count down from 100 as flash wears out.

Their ids (177, 202, 231, 233) mean something else on other models; the names are from smartctl's
database.
"""


def _wear(document: object, attributes: Sequence[object]) -> float | None:
    """Return the share used as smartctl (7.4 and later), NVMe or an ATA attribute reports it."""
    used = _first(document, ("endurance_used", "current_percent"), (_NVME, "percentage_used"))
    for row in attributes if used is None else ():
        name, left = str(_at(row, "name")).lower(), _at(row, "value")
        if isinstance(left, int) and 0 < left <= 100 and any(word in name for word in WORN):
            used = 100.0 - left
            break
    return None if used is None else max(0.0, used / 100)


def _first(document: object, *paths: tuple[str, str]) -> float | None:
    """Return the first number found at one of these paths; None if there is none."""
    for path in paths:
        value = _at(document, *path)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and abs(value) < 1e6:
            return float(value)
    return None


def _at(document: object, *path: str) -> Any:
    """Return the value at a path of keys; None if there is none."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document
