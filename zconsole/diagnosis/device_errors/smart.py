"""What a device counts of its own errors, from ``smartctl -j``.

Output: smartmontools 7.0 and later, ``smartctl -j -H -A`` (smartctl.cpp, ataprint.cpp,
nvmeprint.cpp, scsiprint.cpp).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from zconsole.diagnosis.device_errors.faults import SmartCounts

ATTRIBUTES = {5: "reallocated", 197: "pending", 198: "uncorrectable", 199: "crc"}


def smart_counts(text: str) -> SmartCounts | None:
    """The counts in ``smartctl -j`` output; None when it is none or tells nothing."""
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
