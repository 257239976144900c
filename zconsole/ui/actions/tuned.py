"""What consoles have set, looked at beside the painting: the disk that knows may hang."""

from __future__ import annotations

from dataclasses import dataclass, field

from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.tunables.control import Control, Past


@dataclass(slots=True)
class TunedWatch:
    """What is known of the tunables that were set from consoles."""

    control: Control
    past: Past = field(default_factory=Past)
    """As of the newest look."""
    _busy: bool = False

    async def round(self) -> None:
        """Look again; nothing while an earlier round is still under way."""
        if self._busy:
            return
        self._busy = True
        try:
            await self.look()
        finally:
            self._busy = False

    async def look(self) -> None:
        """Look again, after something was changed from here."""
        self.past = await in_daemon_thread(self.control.past)
