"""An app whose own messages and inputs show nothing that a terminal would act on."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING

from textual import events
from textual.app import App
from textual.command import CommandPalette
from textual.notifications import SeverityLevel

from zconsole.units import clean

if TYPE_CHECKING:
    from zconsole.ui.view_state import ViewState


class SafeApp(App[None]):
    """What is outside text in a message is made safe here, whoever tells it."""

    view_state: ViewState
    _told: Mapping[str, float] = {}
    """What is on the screen now, and until when."""

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Say it for a while, once; textual would send escape sequences as they are."""
        safe = "\n".join(map(self.view_state.look.text, message.split("\n")))
        now, lasts = monotonic(), self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        self._told = {text: end for text, end in self._told.items() if end > now}
        if safe not in self._told:
            self._told[safe] = now + lasts
            super().notify(safe, title=title, severity=severity, timeout=timeout, markup=markup)

    def action_command_palette(self) -> None:
        """Textual's own has a prompt that is not ASCII."""
        if not isinstance(self.screen, CommandPalette):
            placeholder = "search for what to do"
            self.push_screen(CommandPalette(id="--command-palette", placeholder=placeholder))

    async def on_event(self, event: events.Event) -> None:
        """What is pasted leaves behind what cannot be shown: inputs draw all they hold."""
        if isinstance(event, events.Paste):
            event.text = "".join(c for c in event.text if c == "\n" or clean(c) == c)
        await super().on_event(event)
