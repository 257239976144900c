"""What is found: the limit of a running scan, and its estimated maximum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from zconsole.diagnosis.bottleneck.trials import TunableStep
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
    "smr": "a shingled new disk",
    "disks": "disk throughput",
    "metadata": "metadata scanning",
    "unclear": "unclear",
}
"""Every cause a verdict can name, in words; ``disks`` is a scan that keeps its disks streaming."""


class Verdict(NamedTuple):
    """What limits a running scan, in one line, and the figures behind it."""

    cause: str
    """One of CAUSES."""
    text: str
    """``the new disk sdx: 98 % busy writing 12.2M/s in 30K pieces, siblings 45 %``."""
    figures: Mapping[str, float] = NOTHING
    """What it is based on: bytes/s, seconds and shares by name."""
    sure: float = 0.0
    """How sure it is, 0…1; 0 when unclear."""
    advice: str = ""
    """What could be done, naming the command or tunable; empty when nothing can."""
    disk: str = ""
    """The name of the one device that the text blames; empty where it blames none."""
    tunable: str = ""
    """The tunable that the advice is about; empty where it is about none."""
    tried: TunableStep | None = None
    """Its newest large raise during this scan."""


TOO_LITTLE = Verdict("unclear", "unclear yet: too few samples")


class Ceiling(NamedTuple):
    """The estimated maximum rate of this scan on these disks."""

    rate: float
    """Issued bytes/s."""
    share: float | None
    """Share of it reached now, 0…1; None while it is paused."""
    text: str
    """What it is based on."""

    def at(self, rate: float) -> Ceiling:
        """Return the ceiling of a scan that goes at ``rate`` (bytes/s) now, and can do that."""
        best = max(rate, self.rate)
        return self._replace(rate=best, share=rate / best if best else None)
