"""How far the resilver is that a swap waits for."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole.actions.plan import Situation
from zconsole.actions.running_scans import describe
from zconsole.pool.model import Scan, Vdev
from zconsole.swap.checklist import Checklist

FILLING = ("zpool replace", "zpool online", "zpool clear", "zpool resilver")
"""What a resilver follows."""
BEGINNING = 10.0
"""Seconds after a command until the resilver that it causes has begun at the latest."""


def waits_its_turn(s: Situation, leaf: Vdev | None) -> bool:
    """Whether the device's resilver starts only after the one that runs."""
    running = any(scan.function == "resilver" for scan in s.running)
    return running and leaf is not None and leaf.awaiting_resilver


def filling(s: Situation, leaf: Vdev | None = None) -> str:
    """The running resilver or rebuild in words; that one is about to begin where none runs.

    ``leaf``: the device that is waited for; the one that runs may be of others only.
    """
    if s.suspended:
        return f"{s.pool.name} is suspended: no resilver runs"
    runs = [scan for scan in s.running if scan.function in ("resilver", "rebuild")]
    if waits_its_turn(s, leaf):
        return f"its own resilver, which starts after the running one ({_all(runs)})"
    if runs:
        return _all(runs)
    if any(leaf.awaiting_resilver for leaf in s.pool.root.leaves()):
        return "the next resilver (awaiting resilver)"
    return "the resilver to begin"


def _all(scans: Sequence[Scan]) -> str:
    return "; ".join(map(describe, scans))


def repairs(s: Situation) -> bool:
    """Whether a resilver or rebuild runs, or a device waits for one."""
    waiting = any(leaf.awaiting_resilver for leaf in s.pool.root.leaves())
    return waiting or any(scan.function in ("resilver", "rebuild") for scan in s.running)


def just_ran(c: Checklist, now: float) -> bool:
    """Whether a command ran so recently that its resilver may not have begun."""
    begun = (entry for entry in c.log if entry.command.startswith(FILLING))
    return any(0.0 <= now - entry.t < BEGINNING for entry in begun)
