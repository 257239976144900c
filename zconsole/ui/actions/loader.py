"""Loads what acts once there is something to see, and starts what the action keys ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from zconsole.errors import ExitCode, ZconsoleError
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.timeline.feed import Update
from zconsole.ui.background import begin
from zconsole.ui.themed_app import ThemedApp
from zconsole.zfs.sources.base import Capabilities

if TYPE_CHECKING:
    from zconsole.actions.backend import ActionBackend
    from zconsole.timeline.feed import Feed
    from zconsole.ui.actions.controller import ActionController

    MakeBackend = Callable[[], ActionBackend]


class ActionLoader:
    """What a console knows of acting: why it may not, and the controller once it is loaded."""

    def __init__(
        self,
        feed: Feed,
        make_backend: MakeBackend | None = None,
        *,
        read_only: bool = False,
        fault: str = "",
    ) -> None:
        """Without ``make_backend`` the console only watches, and its action keys say why.

        ``fault``: what is wrong with the configuration, which allows no changes then.
        """
        self.controller: ActionController | None = None
        self._feed = feed
        self._make_backend = make_backend
        self._read_only = fault or ("read-only" if read_only else "")
        self._loading = asyncio.Lock()
        self._at_swap = False
        """Whether the swap that the console was opened for was begun."""
        self._source: Capabilities | None = None

    @property
    def denied(self) -> str:
        """Why nothing may be changed: read-only, a recording, not root; empty when it may."""
        if self._read_only:
            return self._read_only
        if self._source is not None and not self._source.live:
            return "this is a recording: nothing can be changed"
        source_denied = self._source.denied if self._source is not None else ""
        if self._make_backend is None:
            return source_denied or "this pool can only be watched from here"
        return (self.controller.context.backend.denied if self.controller else "") or source_denied

    def take(self, app: ThemedApp, update: Update) -> None:
        """See what a round came from; the first has what acts loaded, once it is on the screen."""
        if self._source is None and self._make_backend is not None:
            load = partial(self._loaded, app, self._make_backend)
            app.call_after_refresh(begin, app, load, group="load")
        pool, key = app.view_state.options.swap_at or ("", "")
        if not self._at_swap and any(frame.pool == pool for frame in update.frames):
            self._at_swap, app.view_state.pool = True, pool
            app.call_after_refresh(self.start, app, "swap", key)
        self._source = update.capabilities
        # Of a recording nobody expects that it can be changed: no action is offered.
        app.view_state.denied = self.denied if self._source.live else None

    def asks_to_leave(self, code: ExitCode) -> bool:
        """Ask before quitting with ``code``, where something goes on or ends; whether it does."""
        return self.controller is not None and self.controller.asks_to_leave(code)

    def start(self, app: ThemedApp, flow: str, key: str | None) -> None:
        """Start a flow of the controller, about the row of this key; say so where it cannot be."""
        if not app.main_on_top:
            return
        if app.view_state.frame is None:
            app.notify("no pool was sampled yet; try again in a moment", timeout=4)
        elif (make_backend := self._make_backend) is None:
            none = "no log of commands: " if flow == "log" else ""
            app.notify(f"{none}{self.denied}", severity="warning", timeout=4, markup=False)
        else:

            async def _guarded() -> None:
                try:
                    controller = await self._loaded(app, make_backend)
                    await controller.run(flow, key or "")
                except ZconsoleError as error:
                    app.flow_failed()
                    app.notify(str(error), severity="error", markup=False)

            app.begin_flow(_guarded)

    async def _loaded(self, app: ThemedApp, make_backend: MakeBackend) -> ActionController:
        """What acts, loaded the first time, in a thread while the console goes on."""
        async with self._loading:
            if self.controller is None:
                self.controller = await in_daemon_thread(partial(self._load, app, make_backend))
                self._feed.contributor = self.controller
                begin(app, self.controller.look_at_tunables, group="tuned")
                begin(app, self.controller.tidy_lights, group="lights")
        return self.controller

    def _load(self, app: ThemedApp, make_backend: MakeBackend) -> ActionController:
        from zconsole.ui.actions.context import FlowContext
        from zconsole.ui.actions.controller import ActionController
        from zconsole.ui.actions.follow_up import FollowUp
        from zconsole.ui.swap.swap_watch import SwapWatch

        backend, watch = make_backend(), FollowUp(self._feed)
        swaps = SwapWatch(app.view_state.options.swap, backend, lambda: app.view_state.frames)
        context = FlowContext(app, self._feed, backend, watch, lambda: self.denied, swaps)
        return ActionController(context)
