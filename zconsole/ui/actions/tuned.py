"""What consoles have set, read beside the painting: the disk that has it may hang."""

from __future__ import annotations

from dataclasses import dataclass, field

from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.tunables.control import Control, Past


@dataclass(slots=True)
class TunedWatch:
    """What is known of the tunables that were set from consoles."""

    control: Control
    past: Past = field(default_factory=Past)
    """As of the newest reading."""
    _busy: bool = False

    async def round(self) -> None:
        """Read again; nothing while an earlier round is still under way."""
        if self._busy:
            return
        self._busy = True
        try:
            await self.refresh()
        finally:
            self._busy = False

    async def refresh(self) -> None:
        """Read again, after something was changed from here."""
        self.past = await in_daemon_thread(self.control.past)
