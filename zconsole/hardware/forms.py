"""Disks and enclosures as raw forms have them (``zfs.decode.devices`` reads them)."""

from __future__ import annotations

from typing import Any

from zconsole.pool.chassis import Enclosure, LeafDisk


def disk_form(disk: LeafDisk) -> dict[str, Any]:
    """A disk as a raw form has it: what is known of it."""
    return {key: value for key, value in disk._asdict().items() if value not in ("", None)}


def enclosure_form(found: Enclosure) -> dict[str, Any]:
    """An enclosure as a raw form has it."""
    slots = [[slot.number, slot.name, *slot.disks] for slot in found.slots]
    return {"key": found.key, "name": found.name, "slots": slots}
