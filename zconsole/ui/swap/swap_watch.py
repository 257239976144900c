"""The open checklists of this machine: read now and then, shown in the frames.

Imports neither textual nor what leads through a swap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from zconsole.errors import ZconsoleError
from zconsole.eta.estimate import nothing
from zconsole.history.views import ActivityView
from zconsole.monitor.frame import Frame
from zconsole.pool.model import Activity
from zconsole.swap.checklist import OPEN, TITLES, Checklist
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.state_dir import StateError

if TYPE_CHECKING:
    from zconsole.swap.backend import SwapBackend
    from zconsole.swap.store import SwapStore


@dataclass(slots=True)
class SwapWatch:
    """What is known of checklists; ``make_backend`` is None where no disk can be swapped."""

    make_backend: Callable[[], SwapBackend] | None = None
    open: tuple[Checklist, ...] = ()
    """The open ones, the newest first."""
    _backend: SwapBackend | None = None
    _reader: SwapStore | None = field(default=None, repr=False)
    _looked: bool = False

    @property
    def backend(self) -> SwapBackend:
        """What leads through a swap. Raises ZconsoleError where nothing does."""
        if self.make_backend is None:
            raise ZconsoleError("disks of this pool can't be swapped from here")
        if self._backend is None:
            self._backend = self.make_backend()
        return self._backend

    async def look(self) -> str:
        """Read the checklists again; what to announce of those found at the start."""
        if self.make_backend is None:
            return ""
        try:
            found = await in_daemon_thread(self._read)
        except StateError:  # whoever opens one is told
            return ""
        self.open = tuple(c for c in found if c.state == OPEN)
        first, self._looked = not self._looked, True
        names = ", ".join(c.old.words for c in self.open)
        return f"Disk swap open: {names}. C goes on with it." if first and names else ""

    def _read(self) -> tuple[Checklist, ...]:
        if self._reader is None:
            self._reader = self.backend.make_store(False)
        return self._reader.read()

    def of(self, frame: Frame) -> tuple[Checklist, ...]:
        """The open checklists of a pool."""
        return tuple(filter(partial(_is_of, frame), self.open))

    def shown(self, frame: Frame) -> tuple[ActivityView, ...]:
        """A line for each open checklist of a pool."""
        return tuple(map(activity, self.of(frame)))


def _is_of(frame: Frame, c: Checklist) -> bool:
    return c.guid == frame.guid if c.guid and frame.guid else c.pool == frame.pool


def activity(c: Checklist) -> ActivityView:
    """An open checklist as a line beside the scans."""
    step = "wrong disk out" if c.wrong else TITLES[c.at]
    note = f"{c.old.place or c.old.name}: {step}  (C continues)"
    return ActivityView(Activity("disk swap", "open", note=note), None, nothing(""))
