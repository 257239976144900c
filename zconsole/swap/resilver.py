"""How far the resilver is that a swap waits for."""

from __future__ import annotations

from zconsole.actions.plan import Situation
from zconsole.actions.running_scans import describe
from zconsole.swap.checklist import Checklist

FILLING = ("zpool replace", "zpool online", "zpool clear")
"""What a resilver follows."""
BEGINNING = 10.0
"""Seconds after a command until the resilver that it causes has begun at the latest."""


def filling(s: Situation) -> str:
    """The running resilver or rebuild in words; that one is about to begin where none runs."""
    if s.suspended:
        return f"{s.pool.name} is suspended: no resilver runs"
    runs = [scan for scan in s.running if scan.function in ("resilver", "rebuild")]
    if runs:
        return "; ".join(describe(scan) for scan in runs)
    if any(leaf.awaiting_resilver for leaf in s.pool.root.leaves()):
        return "the next resilver (awaiting resilver)"
    return "the resilver to begin"


def repairs(s: Situation) -> bool:
    """Whether a resilver or rebuild runs, or a device waits for one."""
    waiting = any(leaf.awaiting_resilver for leaf in s.pool.root.leaves())
    return waiting or any(scan.function in ("resilver", "rebuild") for scan in s.running)


def just_ran(c: Checklist, now: float) -> bool:
    """Whether a command ran so recently that its resilver may not have begun."""
    begun = (entry for entry in c.log if entry.command.startswith(FILLING))
    return any(0.0 <= now - entry.t < BEGINNING for entry in begun)
