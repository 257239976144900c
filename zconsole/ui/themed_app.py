"""Base of the console app, as dialogs and flows know it: view state, theme, messages and input.

Messages and pastes are cleaned of control characters before they are shown. On slow links people
type ahead: keys and pastes wait for the screen they are meant for, and then act on it in their
order; never on the screen behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable
from functools import partial
from time import monotonic
from typing import Any, ClassVar

from textual import events
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.message_pump import MessagePump
from textual.notifications import SeverityLevel
from textual.screen import Screen, ScreenResultType
from textual.signal import Signal
from textual.widgets import Input
from textual.worker import Worker

from zconsole.system.patient import NotAskedError
from zconsole.system.printable import clean
from zconsole.ui.keys import MAIN, character_of, shown
from zconsole.ui.messages import KEY, PAGE, SETTLES, Messages, wrapped
from zconsole.ui.theme.files import ThemeFile
from zconsole.ui.theme.styles import Palette, palette, textual_theme
from zconsole.ui.view_state import ViewState
from zconsole.ui.widgets.draw import Line

Work = Callable[[], Coroutine[Any, Any, object]]


def begin(
    node: DOMNode, work: Work, group: str, *, exclusive: bool = False, exit_on_error: bool = True
) -> None:
    """Run work until it ends, or the console or screen does, or no thread can be started for it.

    The coroutine is created only when the worker starts: if a key pressed right after ``q`` created
    one that never runs, Python would print "never awaited" on the terminal.
    """

    async def _attempt() -> None:
        try:
            await work()
        except NotAskedError as error:  # what is needed is tried again, by the console or its user
            node.app.notify(str(error), severity="warning")

    _: Worker[None] = node.run_worker(
        _attempt,
        group=group,
        # Otherwise textual keeps a description of the work with all its arguments: a whole round.
        description=group,
        exclusive=exclusive,
        exit_on_error=exit_on_error,
    )


def begin_next(app: App[Any], work: Work, group: str) -> None:
    """Run work unless earlier work of the same group is still running."""
    if all(worker.is_finished for worker in app.workers if worker.group == group):
        begin(app, work, group)


OF_POOLS = frozenset(
    {"act", "overview", "what_if", "chassis", "zpool", "go_to", "seek", "step", "event"}
)
"""Actions that need a sample: they show or change pools, or move within a recording."""
FLOW = "flow"
"""Worker group of the flows, which ask questions screen after screen; subject of their errors."""
SLOW = 0.5
"""Seconds after which a message announces a screen that is still to come."""
_COMING = "coming"
"""Subject of the message about a screen that is still to come."""
_Typed = events.Key | events.Paste
_NOW = ("ctrl+c", "ctrl+z")
"""Keys that act at once."""


class TypedAheadScreen(Screen[ScreenResultType]):
    """A screen that typed-ahead keys wait for."""

    composed = False
    """Whether its views are mounted, so that it can be drawn and typed in."""
    read_first: ClassVar[bool] = False
    """Whether keys typed before it appeared are dropped, except Esc, as its keys run things."""
    holds = False
    """Whether keys wait, except Esc, although it is shown: it is still being filled in."""


class ConsolePalette(CommandPalette):
    """Textual's palette without its crash on a late search.

    Textual's search looks for its list even after the palette is closed, which would end the
    console.
    """

    def run_worker(  # type: ignore[override]
        self, work: Callable[[], Coroutine[Any, Any, Any]], *args: Any, **options: Any
    ) -> Worker[Any]:
        """Run a search; one that finds no list any more ends silently."""
        return super().run_worker(partial(self._while_open, work), *args, **options)

    async def _while_open(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        try:
            return await work()
        except NoMatches:
            if self.query(CommandList):
                raise
            return None


class ThemedApp(App[None]):
    """An app drawn with theme files, with screens over its main one."""

    def __init__(
        self, view_state: ViewState, themes: Iterable[ThemeFile], ansi_color: bool | None
    ) -> None:
        super().__init__(ansi_color=ansi_color)
        self.view_state = view_state
        self.theme_files = {theme.name: theme for theme in themes}
        for theme in self.theme_files.values():
            self.register_theme(textual_theme(theme))
        self._palettes: dict[str, Palette] = {}
        """Styles by theme name, cached as every line drawn asks for them."""
        self.messages = Messages()
        self.messages_signal: Signal[Messages] = Signal(self, "messages")
        """Published when the messages have changed."""
        self._ahead: deque[_Typed] = deque()
        """Keys that wait for the screen they are meant for."""
        self._flow_keys: Collection[str] = ()
        """Keys that started the flow that runs."""
        self._asked = False
        """Whether a screen of the newest flow was shown, so that Esc is meant for it, not for the
        flow."""

    @property
    def sixteen(self) -> bool:
        """Whether the terminal has only sixteen colors."""
        return self.console.color_system in ("standard", None) and not self.no_color

    @property
    def palette(self) -> Palette:
        """Styles of the present theme; one object for all who draw with it."""
        theme = self.theme_files.get(self.theme)
        if theme is None:
            return {}
        if self.theme not in self._palettes:
            self._palettes[self.theme] = palette(theme, no_color=self.no_color)
        return self._palettes[self.theme]

    @property
    def late(self) -> Line:
        """Age of the data shown, once it is late; an app that shows pools overrides this."""
        return ()

    @property
    def main_on_top(self) -> bool:
        """Whether no other screen is over the main one."""
        return len(self.screen_stack) == 1

    def pop_screen(self) -> AwaitComplete:
        """Leave the screen on top, without painting for a moment.

        A flow often shows its next screen then, and the main screen would flash in between. If that
        screen takes long, a message says so.
        """
        self.set_timer(SLOW, self._say_coming)
        if not self.is_headless:
            self.delay_update()
        return super().pop_screen()

    def paint(self) -> None:
        """Paint the present view state; an app that shows pools overrides this."""

    def await_filled(self) -> None:
        """Go to the disk that a replacement begins to fill; for apps with a device list."""

    def notify(
        self,
        message: str,
        *,
        title: str = "",  # noqa: ARG002 - textual's own
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,  # noqa: ARG002 - never read as markup
        about: object = None,
        follows: Callable[[], str] | None = None,
    ) -> None:
        """Show a message for a while in the footer; the same one only once.

        It replaces others ``about`` the same subject, and says what ``follows`` returns, until that
        is empty. Textual's own messages would cover data, and may contain escape sequences.
        """
        safe = self._safe(message)
        pages = len(wrapped(safe, severity, self.size.width))
        asked = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        lasts = asked if pages == 1 else max(asked, pages * PAGE)
        on_top = self.screen if self.screen_stack else None
        now = None if follows is None else lambda: self._safe(follows())
        if self.messages.add(safe, severity, monotonic(), lasts, on_top, about, now):
            self.update_messages()
            # Redraw when the message settles, and when each of its lines is due.
            for wait in (SETTLES, *(PAGE * page for page in range(1, pages + 1))):
                self.set_timer(wait, self.update_messages)
        self.set_timer(lasts, self.update_messages)

    def _safe(self, message: str) -> str:
        look = self.view_state.look
        return "\n".join(map(look.text, look.said(message).split("\n")))

    def answer(self, message: str, timeout: float) -> None:
        """Show a message that answers a key, and goes with the next one."""
        self.notify(message, timeout=timeout, about=KEY)

    def withdraw(self, about: object) -> None:
        """Remove the messages about a subject."""
        self.messages.forget(about)
        self.update_messages()

    def update_messages(self) -> None:
        """Publish the messages that are due now, without those that are over or not true."""
        if not self.screen_stack:  # screens end before timers do
            return
        now = monotonic()
        self.messages.drop(now)
        if not self._awaited:  # else they move on to the flow's next screen
            self.messages.settle(self.screen, now)
        self.messages_signal.publish(self.messages)

    def action_press(self, key: str) -> None:
        """Press a key, on behalf of a click on its name."""
        self.post_message(events.Key(key, character_of(key)))

    def action_command_palette(self) -> None:
        """Open the palette, with a prompt in ASCII unlike textual's own."""
        if not isinstance(self.screen, CommandPalette):
            placeholder = "Type a command"
            self.push_screen(ConsolePalette(id="--command-palette", placeholder=placeholder))

    # Typing ahead: keys and pastes that wait for their screen

    def begin_flow(self, work: Work, keys: Collection[str] = ()) -> None:
        """Start a flow with screens of its own; it replaces the present one.

        ``keys`` have started it: on its screens that have no other use for them, they do nothing.
        """
        self._asked, self._flow_keys = False, keys
        self.messages.forget(FLOW)
        begin(self, work, group=FLOW, exclusive=True)
        self.set_timer(SLOW, self._say_coming)

    def flow_failed(self) -> None:
        """Drop the keys that were meant for a screen that won't come."""
        self._ahead.clear()

    def screen_ready(self, screen: TypedAheadScreen[Any]) -> None:
        """Note that a screen accepts keys now."""
        self._asked = True
        if screen.read_first:
            self._ahead = deque(filter(_is_escape, self._ahead))
        self.withdraw(_COMING)  # messages that came along stay on this screen
        self.go_on()

    @property
    def _coming(self) -> bool:
        """Whether the next key is meant for a screen that is not there yet."""
        if not self.screen_stack:  # screens end before timers do
            return False
        if isinstance(self.screen, TypedAheadScreen):
            return self.screen.holds or not self.screen.composed
        return self._awaited

    @property
    def _awaited(self) -> bool:
        """Whether a flow runs or is to start, and none of its screens is shown."""
        if self._ahead and self._is_early(self._ahead[0]):
            return True
        flows = (worker for worker in self.workers if worker.group == FLOW)
        # A worker that is canceled before it starts is never finished.
        over = all(flow.is_finished or flow.is_cancelled for flow in flows)
        return len(self.screen_stack) == 1 and not over

    def on_worker_state_changed(self, message: Worker.StateChanged) -> None:
        """Release the waiting keys when a flow ends, as it has no more screens."""
        if message.worker.group == FLOW and message.worker.is_finished:
            self._flow_keys = ()
            self.withdraw(_COMING)
            self.go_on()

    async def on_event(self, event: events.Event) -> None:
        """Queue a key, or act on it at once, as the next one may be meant for the screen it opens.

        Pastes lose what can't be shown, as inputs draw all they contain.
        """
        if isinstance(event, events.Paste):
            event.text = "".join(c for c in event.text if c == "\n" or clean(c) == c)
        if isinstance(event, _Typed) and not event.is_forwarded and self.screen_stack:
            top = self.screen
            if isinstance(event, events.Key) and event.key in _NOW:
                await self._act(event)
            elif _is_escape(event) and self._awaited and not self._asked:
                self._give_up()  # nothing of the flow is shown yet
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
        """Stop waiting for a screen of a flow, and cancel it."""
        self._ahead.clear()
        self.withdraw(_COMING)
        self.workers.cancel_group(self, FLOW)

    def go_on(self) -> None:
        """Act on the queued keys as an event of this app, never while another key is handled."""
        if self._ahead:
            self.post_message(events.Callback(callback=self._act_ahead))

    async def _act_ahead(self) -> None:
        while self.screen_stack and self._ahead and not self._coming:
            await self._act(self._ahead.popleft())

    async def _act(self, typed: _Typed) -> None:
        """Run the key's binding before the next key is looked at, unless the key may be text."""
        if self.messages.forget(KEY):
            self.update_messages()
        self.app_focus = True  # as App.on_event, which this replaces
        prompt, screen = self.focused if isinstance(self.focused, Input) else None, self.screen
        if not await self._run_binding(typed, prompt):
            await super().on_event(typed)
        if prompt is not None:
            # Textual queues characters for the input, and the answer for its screen.
            await _idle(prompt)
            await _idle(screen)

    async def _run_binding(self, typed: _Typed, prompt: Input | None) -> bool:
        """Run the binding of a key, unless it may be text; return whether it had one."""
        if isinstance(typed, events.Paste):
            return False
        # Inputs, and screens with on_key, get characters before bindings do.
        if typed.is_printable if prompt else hasattr(self.screen, "on_key"):
            return False
        pressed = typed.key
        return await self._check_bindings(pressed, True) or await self._check_bindings(pressed)

    async def _on_key(self, event: events.Key) -> None:
        """Run the binding of a key that no view took; notify the operator if it has none."""
        event.prevent_default()  # textual would run the bindings again
        if await self._check_bindings(event.key) or isinstance(self.focused, Input):
            return
        if event.key in self._flow_keys and not self.main_on_top:
            return
        typed = event.character or ""
        key = typed if typed.strip() and typed.isprintable() else shown(event.key)
        helps = self.view_state.look.keys.shown("help")
        self.answer(f"Key {key} does nothing here; {helps} lists the keys", 4)

    def _say_coming(self) -> None:
        if self.screen_stack and self._awaited:
            self._asked = False
            self.notify("Reading the pool  Esc back", timeout=60, about=_COMING)

    def _is_early(self, typed: _Typed) -> bool:
        """Return whether a key has to wait for the first sample; later keys then wait behind it.

        No pools are known before that sample.
        """
        if self.view_state.latest is not None or not self.main_on_top:
            return False
        rows = self.view_state.look.keys.rows
        key = typed.key if isinstance(typed, events.Key) else ""
        return any(key in row.keys and row.name in OF_POOLS for row in rows if row.group in MAIN)


async def _idle(node: MessagePump) -> None:
    """Wait until a widget or screen has processed what is queued for it, or is gone."""
    idle = asyncio.Event()
    if node.call_later(idle.set):
        with contextlib.suppress(TimeoutError):  # it was closed meanwhile
            await asyncio.wait_for(idle.wait(), SLOW)


def _is_escape(typed: _Typed) -> bool:
    return isinstance(typed, events.Key) and typed.key == "escape"
