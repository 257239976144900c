"""Keys and pastes before the screen they are meant for is there: on slow links people type ahead.

They wait for that screen and then act on it in their order; never on the screen behind it.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

from textual import events
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.screen import Screen, ScreenResultType
from textual.widgets import Input
from textual.worker import Worker

from zconsole.ui.background import Work, begin

FLOW = "flow"
"""The group of the work that asks a person, screen after screen."""
SLOW = 0.5
"""Seconds after which a screen that is still to come is spoken of."""
_COMING = "Reading the pool"
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


class TypedAheadApp(App[None]):
    """An app whose keys wait for a screen that is about to come."""

    def __init__(self, ansi_color: bool | None) -> None:
        super().__init__(ansi_color=ansi_color)
        self._ahead: deque[_Typed] = deque()
        self._asked = False
        """Whether Esc is meant for a screen of the newest flow, and not for the wait for one."""

    def begin_flow(self, work: Work) -> None:
        """Ask something in screens of its own, in place of what is asked now."""
        self._asked = False
        begin(self, work, group=FLOW, exclusive=True)
        self.set_timer(SLOW, self._say_coming)

    def flow_failed(self) -> None:
        """Drop the keys that were meant for a screen that does not come."""
        self._ahead.clear()

    def pop_screen(self) -> AwaitComplete:
        """Leave the screen on top; the next one of its flow may also be long in coming."""
        self.set_timer(SLOW, self._say_coming)
        return super().pop_screen()

    def screen_ready(self, screen: TypedAheadScreen[Any]) -> None:
        """A screen can be typed into now."""
        self._asked = True
        if screen.read_first:
            self._ahead = deque(filter(_is_escape, self._ahead))
        self.unsay(_COMING)
        self.go_on()

    def is_early(self, typed: _Typed) -> bool:
        """Whether a key needs what is not known yet; one that does holds up those behind it."""
        raise NotImplementedError

    def unsay(self, beginning: str) -> None:
        """Show no longer a message that begins so."""
        raise NotImplementedError

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
        if self._ahead and self.is_early(self._ahead[0]):
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
        """Have a key wait, or act at once: the one behind it may be meant for what it opens."""
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
                if len(self._ahead) == 1 and self.is_early(event):
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

    def _say_coming(self) -> None:
        if self.screen_stack and self._awaited:
            self._asked = False
            self.notify(f"{_COMING}  Esc back", timeout=60)


def _is_escape(typed: _Typed) -> bool:
    return isinstance(typed, events.Key) and typed.key == "escape"
