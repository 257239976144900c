"""What is found: the limit of a running scan, and the ceiling above it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from zconsole.pool.model import NOTHING

CAUSES = {
    "new-disk": "the new disk's writes",
    "slow-disk": "a slow source disk",
    "random": "random I/O",
    "foreground": "other I/O",
    "throttle": "a throttle or tunable",
    "memory": "scan memory",
    "cpu": "the processor",
    "bus": "a shared link",
    "smr": "the collapse of the new disk",
    "disks": "the disks themselves",
    "metadata": "walking metadata",
    "unclear": "not clear",
}
"""Every cause a verdict can name, in words; ``disks`` is a scan that keeps its disks streaming."""


class Verdict(NamedTuple):
    """What a running scan waits for, in one line, and what that rests on."""

    cause: str
    """One of CAUSES."""
    text: str
    """``the new disk sdx: 98% busy writing 12.2M/s in 30K pieces, the others 45%``."""
    figures: Mapping[str, float] = NOTHING
    """What it rests on: bytes/s, seconds and shares by name."""
    sure: float = 0.0
    """How sure it is, 0…1; 0 when not clear."""
    advice: str = ""
    """What could be done, naming the command or tunable; empty when nothing can."""
    disk: str = ""
    """The name of the one device that the text blames; empty where it blames none."""


TOO_LITTLE = Verdict("unclear", "not clear yet: too little was seen")


class Ceiling(NamedTuple):
    """The fastest this scan could go on these disks."""

    rate: float
    """Issued bytes/s."""
    share: float | None
    """Share of it reached now, 0…1."""
    text: str
    """What it rests on."""
