"""What dialogs and flows know of the console: its view state, its theme, what is on top.

Messages and pastes are cleaned of what a terminal would act on before they are shown. On slow
links people type ahead: keys and pastes wait for the screen they are meant for and then act on it
in their order; never on the screen behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from time import monotonic
from typing import Any, ClassVar

from textual import events
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette
from textual.notifications import SeverityLevel
from textual.screen import Screen, ScreenResultType
from textual.signal import Signal
from textual.widgets import Input
from textual.worker import Worker

from zconsole.system.printable import clean
from zconsole.ui.background import Work, begin
from zconsole.ui.keys import MAIN, character_of, shown
from zconsole.ui.messages import PAGE, SETTLES, Messages, wrapped
from zconsole.ui.theme.files import ThemeFile
from zconsole.ui.theme.styles import Palette, palette, textual_theme
from zconsole.ui.view_state import ViewState
from zconsole.ui.widgets.draw import Line

OF_POOLS = frozenset({"act", "overview", "what_if", "chassis"})
"""Actions that show or change pools."""
FLOW = "flow"
"""The group of the work that asks a person, screen after screen."""
SLOW = 0.5
"""Seconds after which a screen that is still to come is spoken of."""
_COMING = "Reading the pool"
_IDLE = "Key "
"""How what is said of a key that does nothing begins."""
_Typed = events.Key | events.Paste
_NOW = ("ctrl+c", "ctrl+z")
"""Keys that nothing holds up."""


class TypedAheadScreen(Screen[ScreenResultType]):
    """A screen that keys wait for."""

    composed = False
    """Whether there are views to draw and to type in."""
    read_first: ClassVar[bool] = False
    """Whether keys typed before it was there are dropped, except Esc: it runs things."""
    holds = False
    """Whether keys wait, except Esc, though it is there: for what is still to be filled in."""


class ThemedApp(App[None]):
    """An app drawn in theme files, with screens over its main one."""

    def __init__(
        self, view_state: ViewState, themes: Iterable[ThemeFile], ansi_color: bool | None
    ) -> None:
        super().__init__(ansi_color=ansi_color)
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
        self._ahead: deque[_Typed] = deque()
        """Keys that wait for the screen they are meant for."""
        self._asked = False
        """Whether Esc is meant for a screen of the newest flow, and not for the wait for one."""

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

        In it a flow comes with its next screen, before which the main one would flash; that one
        may also be long in coming.
        """
        self.set_timer(SLOW, self._say_coming)
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
        pages = len(wrapped(safe, severity, self.size.width))
        asked = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        lasts = asked if pages == 1 else max(asked, pages * PAGE)
        on_top = self.screen if self.screen_stack else None
        if self.messages.add(safe, severity, monotonic(), lasts, on_top):
            self._tell()
            for wait in (SETTLES, *(PAGE * page for page in range(1, pages + 1))):
                self.set_timer(wait, self._tell)
        self.set_timer(lasts, self._tell)

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

    # Keys and pastes before the screen they are meant for is there

    def begin_flow(self, work: Work) -> None:
        """Ask something in screens of its own, in place of what is asked now."""
        self._asked = False
        begin(self, work, group=FLOW, exclusive=True)
        self.set_timer(SLOW, self._say_coming)

    def flow_failed(self) -> None:
        """Drop the keys that were meant for a screen that does not come."""
        self._ahead.clear()

    def screen_ready(self, screen: TypedAheadScreen[Any]) -> None:
        """A screen can be typed into now."""
        self._asked = True
        if screen.read_first:
            self._ahead = deque(filter(_is_escape, self._ahead))
        self.unsay(_COMING)
        self.go_on()

    @property
    def _coming(self) -> bool:
        """Whether the next key is meant for a screen that is not there yet."""
        if not self.screen_stack:  # as a console closes, screens end before timers
            return False
        if isinstance(self.screen, TypedAheadScreen):
            return self.screen.holds or not self.screen.composed
        return self._awaited

    @property
    def _awaited(self) -> bool:
        """Whether a flow is under way, or is to come, and nothing of it is to be seen."""
        if self._ahead and self._is_early(self._ahead[0]):
            return True
        flows = (worker for worker in self.workers if worker.group == FLOW)
        # One that is canceled before it has begun never says that it is finished.
        over = all(flow.is_finished or flow.is_cancelled for flow in flows)
        return len(self.screen_stack) == 1 and not over

    def on_worker_state_changed(self, message: Worker.StateChanged) -> None:
        """A flow that is over has no more screens."""
        if message.worker.group == FLOW and message.worker.is_finished:
            self.unsay(_COMING)
            self.go_on()

    async def on_event(self, event: events.Event) -> None:
        """Have a key wait, or act at once: the one behind it may be meant for what it opens.

        Inputs draw all they hold: what cannot be shown is taken out of a paste.
        """
        if isinstance(event, events.Paste):
            event.text = "".join(c for c in event.text if c == "\n" or clean(c) == c)
        if isinstance(event, _Typed) and not event.is_forwarded and self.screen_stack:
            top = self.screen
            if isinstance(event, events.Key) and event.key in _NOW:
                await self._act(event)
            elif _is_escape(event) and self._awaited and not self._asked:
                self._give_up()
            elif _is_escape(event) and isinstance(top, TypedAheadScreen) and top.holds:
                self._ahead.clear()
                await self._act(event)
            else:
                self._ahead.append(event)
                if len(self._ahead) == 1 and self._is_early(event):
                    self.set_timer(SLOW, self._say_coming)
                await self._act_ahead()
        else:
            await super().on_event(event)

    def _give_up(self) -> None:
        """Wait no longer for a screen of a flow."""
        self._ahead.clear()
        self.unsay(_COMING)
        self.workers.cancel_group(self, FLOW)

    def go_on(self) -> None:
        """Act on what waits, in this app's own turn: never in the midst of another key."""
        if self._ahead:
            self.post_message(events.Callback(callback=self._act_ahead))

    async def _act_ahead(self) -> None:
        while self.screen_stack and self._ahead and not self._coming:
            await self._act(self._ahead.popleft())

    async def _act(self, typed: _Typed) -> None:
        """Do what it is bound to, before the next one is looked at, unless it may be text."""
        self.app_focus = True
        text = isinstance(self.focused, Input) or hasattr(self.screen, "on_key")
        if (
            isinstance(typed, events.Key)
            and not text
            and (
                await self._check_bindings(typed.key, priority=True)
                or await self._check_bindings(typed.key)
            )
        ):
            return
        await super().on_event(typed)

    async def _on_key(self, event: events.Key) -> None:
        """Do what a key is bound to that nothing on the screen took; say so if that is nothing."""
        event.prevent_default()  # textual's own does the first half
        if await self._check_bindings(event.key) or isinstance(self.focused, Input):
            return
        typed = event.character or ""
        key = typed if typed.strip() and typed.isprintable() else shown(event.key)
        helps = self.view_state.look.keys.shown("help")
        said = f"{_IDLE}{key} does nothing here; {helps} lists the keys"
        if all(each.message != said for each in self.messages):
            self.unsay(_IDLE)  # of keys hit by chance only the newest is told
        self.notify(said, timeout=4)

    def _say_coming(self) -> None:
        if self.screen_stack and self._awaited:
            self._asked = False
            self.notify(f"{_COMING}  Esc back", timeout=60)

    def _is_early(self, typed: _Typed) -> bool:
        """Whether a key needs what is not known yet; one that does holds up those behind it.

        Before the first sample no pool is known.
        """
        if self.view_state.latest is not None or not self.main_on_top:
            return False
        rows = self.view_state.look.keys.rows
        key = typed.key if isinstance(typed, events.Key) else ""
        return any(key in row.keys and row.name in OF_POOLS for row in rows if row.group in MAIN)


def _is_escape(typed: _Typed) -> bool:
    return isinstance(typed, events.Key) and typed.key == "escape"
