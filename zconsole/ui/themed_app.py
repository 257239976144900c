"""What dialogs and flows know of the console: its view state, its theme, what is on top.

Messages and pastes are cleaned of what a terminal would act on before they are shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic

from textual import events
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette
from textual.notifications import SeverityLevel
from textual.signal import Signal

from zconsole.system.printable import clean
from zconsole.ui.keys import MAIN, character_of
from zconsole.ui.messages import HIDES, SETTLES, Messages
from zconsole.ui.theme.files import ThemeFile
from zconsole.ui.theme.styles import Palette, palette, textual_theme
from zconsole.ui.typed_ahead import TypedAheadApp
from zconsole.ui.view_state import ViewState
from zconsole.ui.widgets.draw import Line

OF_POOLS = frozenset({"act", "overview", "what_if", "chassis"})
"""Actions that show or change pools."""


class ThemedApp(TypedAheadApp):
    """An app drawn in theme files, with screens over its main one."""

    def __init__(
        self, view_state: ViewState, themes: Iterable[ThemeFile], ansi_color: bool | None
    ) -> None:
        super().__init__(ansi_color)
        self.view_state = view_state
        self.theme_files = {theme.name: theme for theme in themes}
        for theme in self.theme_files.values():
            self.register_theme(textual_theme(theme))
        self._palettes: dict[str, Palette] = {}
        """By the name of the theme: what is drawn asks for the styles at each line."""
        self.messages = Messages()
        self.late: Line = ()
        """How old what is shown is, once that is more than a sample or two."""
        self.messages_signal: Signal[Messages] = Signal(self, "messages")
        """Published when what is to be said has changed."""

    @property
    def sixteen(self) -> bool:
        """Whether the terminal has but sixteen colors."""
        return self.console.color_system in ("standard", None) and not self.no_color

    @property
    def palette(self) -> Palette:
        """The styles of the present theme: the same for all that is drawn in it."""
        theme = self.theme_files.get(self.theme)
        if theme is None:
            return {}
        if self.theme not in self._palettes:
            self._palettes[self.theme] = palette(theme, no_color=self.no_color)
        return self._palettes[self.theme]

    @property
    def main_on_top(self) -> bool:
        """Whether no other screen is over the main one."""
        return len(self.screen_stack) == 1

    def pop_screen(self) -> AwaitComplete:
        """Leave the screen on top; for a moment nothing is painted.

        In it a flow comes with its next screen, before which the main one would flash.
        """
        if not self.is_headless:
            self.delay_update()
        return super().pop_screen()

    def paint(self) -> None:
        """Show what the view state has now; a console that shows pools does."""

    def await_filled(self) -> None:
        """Go to the disk that a replacement begins to fill; a console that shows disks does."""

    def notify(
        self,
        message: str,
        *,
        title: str = "",  # noqa: ARG002 - textual's own
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,  # noqa: ARG002 - never read as markup
    ) -> None:
        """Show a message for a while beside the keys, and the same one only once.

        Textual would cover data with it, and send escape sequences as they are.
        """
        safe = "\n".join(map(self.view_state.look.text, message.split("\n")))
        lasts = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        on_top = self.screen if self.screen_stack else None
        if self.messages.add(safe, severity, monotonic(), lasts, on_top):
            self._tell()
            for wait in (SETTLES, HIDES):
                self.set_timer(wait, self._tell)
        self.set_timer(lasts, self._tell)

    def is_early(self, typed: events.Key | events.Paste) -> bool:
        """See TypedAheadApp.is_early: before the first sample no pool is known."""
        if self.view_state.latest is not None or not self.main_on_top:
            return False
        rows = self.view_state.look.keys.rows
        key = typed.key if isinstance(typed, events.Key) else ""
        return any(key in row.keys and row.name in OF_POOLS for row in rows if row.group in MAIN)

    def unsay(self, beginning: str) -> None:
        """Show no longer a message that begins so."""
        self.messages.forget(beginning)
        self._tell()

    def _tell(self) -> None:
        """Show what is to be said now, and no longer what was."""
        if not self.screen_stack:  # as a console closes, screens end before timers
            return
        now = monotonic()
        self.messages.drop(now)
        if not self._awaited:  # what a flow says goes along to the screen that it asks in
            self.messages.settle(self.screen, now)
        self.messages_signal.publish(self.messages)

    def action_press(self, key: str) -> None:
        """Do what a key does: what is clicked names it."""
        self.post_message(events.Key(key, character_of(key)))

    def action_command_palette(self) -> None:
        """Open the palette; textual's own has a prompt that is not ASCII."""
        if not isinstance(self.screen, CommandPalette):
            placeholder = "Type a command"
            # Lazy import: keeps the first paint fast.
            from zconsole.ui.dialogs.palette import ConsolePalette

            self.push_screen(ConsolePalette(id="--command-palette", placeholder=placeholder))

    async def on_event(self, event: events.Event) -> None:
        """Take out of a paste what cannot be shown: inputs draw all they hold."""
        if isinstance(event, events.Paste):
            event.text = "".join(c for c in event.text if c == "\n" or clean(c) == c)
        await super().on_event(event)
