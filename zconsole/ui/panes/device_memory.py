"""What the device list remembers of a pool from frame to frame, so that nothing in it flickers."""

from __future__ import annotations

from dataclasses import dataclass, field

from zconsole.timeline.frame import Frame
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.device_columns import NOTHING_YET, Worth, worth
from zconsole.ui.panes.tree_facts import TreeFacts, tree_facts

HOLD = 30.0
"""Seconds that a device stays tinted after it was last said to limit the scan."""


@dataclass
class DeviceMemory:
    """One pool: which columns it needed, and which of its devices limits the running scan."""

    has: Worth = NOTHING_YET
    culprit: str | None = None
    """Key of the row that limits the scan, or did a moment ago."""
    tree: TreeFacts = field(default_factory=TreeFacts)
    """What follows from the vdevs of the newest frame."""
    _last_said: float = 0.0
    """When it was last said to, in epoch seconds."""

    def take(self, frame: Frame, look: DisplayFormat) -> None:
        """Take in a frame."""
        self.tree = tree_facts(frame)
        if not (self.has.errors and self.has.notes):
            self.has = worth(frame, look, self.tree, self.has)
        if frame.limit is None:
            self.culprit = None
            return
        named = _row_of(frame, frame.limit.disk)
        held = self.culprit is not None and 0 <= frame.t - self._last_said < HOLD
        if named is not None and (named == self.culprit or not held):
            self.culprit, self._last_said = named, frame.t
        elif not held:
            self.culprit = None


def _row_of(frame: Frame, disk: str) -> str | None:
    """The key of the leaf of that name; None without one."""
    leaves = (row.key for row in frame.rows if disk and row.vdev.name == disk)
    return next(leaves, None)
