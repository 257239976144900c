"""The free text after a vdev's counters, as ``zpool status`` words it.

Source: print_status_config in cmd/zpool/zpool_main.c (2.3.9).
"""

from __future__ import annotations

from typing import NamedTuple

from zconsole.zfs.decode.words import aux_text

_TRIM_STATES = {1: "active", 2: "canceled", 3: "suspended", 4: "complete"}


class Condition(NamedTuple):
    """What the note of one vdev is made of."""

    aux: str = ""
    was: str | None = None
    """Path of a missing device, whose name is its GUID."""
    slow_only: bool = False
    ashift: int = 0
    physical_ashift: int = 0
    removing: bool = False
    allocating: bool = True
    marker: str = ""
    initializing: bool = False
    trimming: bool = False


def note_of(condition: Condition) -> str:
    """The printed note; its parts are two blanks apart."""
    c = condition
    parts = [_cause(c)]
    if c.removing:
        parts.append("(removing)")
    elif not c.allocating:
        parts.append("(non-allocating)")
    parts += [c.marker, "(initializing)" if c.initializing else "", _trimming(c)]
    return "  ".join(part for part in parts if part)


def _trimming(condition: Condition) -> str:
    return "(trimming)" if condition.trimming else ""


def _cause(condition: Condition) -> str:
    if condition.was is not None:
        return f"was {condition.was}"
    if text := aux_text(condition.aux, condition.slow_only):
        return text
    if 0 < condition.ashift < condition.physical_ashift < 64:
        return (
            f"block size: {1 << condition.ashift}B configured,"
            f" {1 << condition.physical_ashift}B native"
        )
    return ""


def scan_marker(function: str | None, processed: int, deferred: bool) -> str:
    """The marker of an ONLINE leaf while ``function`` (resilver, scrub) is active."""
    if function is None:
        return ""
    if processed:
        return "(resilvering)" if function == "resilver" else "(repairing)"
    return "(awaiting resilver)" if deferred else ""


def trim_state(value: int) -> str | None:
    """The model's word for a ``vdev_trim_state_t`` or ``vdev_initializing_state_t``."""
    return _TRIM_STATES.get(value)
