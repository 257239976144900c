"""The console that can act: its keys, and what acts, loaded once there is something to see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType

from zconsole.errors import ZconsoleError
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.ui.actions.keys import ACTIONS, offers
from zconsole.ui.app import Console
from zconsole.ui.background import begin
from zconsole.ui.messages import FramesReady
from zconsole.zfs.sources.base import Capabilities

if TYPE_CHECKING:
    from zconsole.actions.backend import ActionBackend
    from zconsole.ui.actions.controller import ActionController


class ActingConsole(Console):
    """The live screen with keys that change the pools it shows."""

    CSS_PATH: ClassVar = ["../console.tcss", "actions.tcss"]  # type: ignore[assignment]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(key.keys), key.action, key.text, show=False) for key in ACTIONS
    ]

    def __init__(
        self, *args: Any, make_backend: Callable[[], ActionBackend] | None = None, **options: Any
    ) -> None:
        """Without ``make_kit`` it only watches, and its action keys say why."""
        super().__init__(*args, **options)
        self._make_backend = make_backend
        self._controller: ActionController | None = None
        self._loading = asyncio.Lock()
        self._source: Capabilities | None = None

    def on_frames_ready(self, message: FramesReady) -> None:
        """Before the round is shown, what acts has a look at it."""
        if self._source is None and self._make_backend is not None:
            self.call_after_refresh(self._prepare, self._make_backend)
        self._source = message.update.capabilities
        self.view_state.offers = offers(self.denied)
        if self._controller is not None:
            message.update = self._controller.look(message.update)

    def _prepare(self, make_backend: Callable[[], ActionBackend]) -> None:
        """Something is on the screen: now load what acts."""
        begin(self, partial(self._loaded, make_backend), group="load")

    async def _loaded(self, make_backend: Callable[[], ActionBackend]) -> ActionController:
        """What acts, loaded the first time, in a thread while the console goes on."""
        async with self._loading:
            if self._controller is None:
                self._controller = await in_daemon_thread(self._load, make_backend)
                begin(self, self._controller.offer_to_put_back, group="tuned")
        return self._controller

    def _load(self, make_backend: Callable[[], ActionBackend]) -> ActionController:
        from zconsole.ui.actions.controller import ActionController

        return ActionController(self, make_backend())

    @property
    def denied(self) -> str:
        """Why nothing may be changed: read-only, a recording, not root; empty when it may."""
        if self.view_state.options.read_only:
            return "read-only"
        if self._source is not None and not self._source.live:
            return "a recording cannot be acted on"
        source_denied = self._source.denied if self._source is not None else ""
        if self._make_backend is None:
            return source_denied or "only watched from here"
        return (self._controller.backend.denied if self._controller else "") or source_denied

    @property
    def colors(self) -> Any:
        """The palette for screens of flows."""
        return self._palette

    # Keys

    def action_next_pane(self, direction: int) -> None:
        """Move the focus between panes, or between the parts of a question."""
        if not self._on_main:
            (self.screen.focus_next if direction > 0 else self.screen.focus_previous)()
            return
        super().action_next_pane(direction)

    async def action_leave(self) -> None:
        """Leave the screen on top, or the console: after asking, if something is left behind."""
        if self._on_main and self._controller is not None and self._controller.left_behind():
            self._act(lambda controller: controller.leave())
        else:
            await super().action_leave()

    def action_actions(self) -> None:
        """List everything that can be done with the row at the cursor."""
        key = self._cursor() or ""
        self._act(lambda controller: controller.row_menu(key))

    def action_scans(self) -> None:
        """List what can be done with scrubs and resilvers."""
        self._act(lambda controller: controller.scan_menu())

    def action_replace(self) -> None:
        """Begin to replace the device at the cursor."""
        key = self._cursor()
        if key is None:
            self.notify("put the cursor on a device first", timeout=4)
            return
        self._act(lambda controller: controller.replace(key))

    def action_tunables(self) -> None:
        """Show the tunables."""
        self._act(lambda controller: controller.tunables())

    def action_rebalance(self) -> None:
        """Rebalance the pool: the list of its jobs, and new ones."""
        self._act(lambda controller: controller.rebalance())

    def _act(self, flow: Callable[[ActionController], Awaitable[None]]) -> None:
        if not self._on_main or self.view_state.frame is None:
            return
        if self._make_backend is None:
            self.notify(self.denied, severity="warning", timeout=4, markup=False)
            return
        flow_of = partial(self._guarded, flow, self._make_backend)
        begin(self, flow_of, group="flow", exclusive=True)

    async def _guarded(
        self,
        flow: Callable[[ActionController], Awaitable[None]],
        make_backend: Callable[[], ActionBackend],
    ) -> None:
        try:
            await flow(await self._loaded(make_backend))
        except ZconsoleError as error:
            self.notify(str(error), severity="error", markup=False)

    def _cursor(self) -> str | None:
        item = self.devices.current
        return item.key if item is not None and item.row is not None else None
