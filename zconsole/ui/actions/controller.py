"""Starts what the action keys ask for, with what acts loaded once there is something to see.

That takes as long to load as all that only looks: imports inside functions keep the first paint
fast.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from zconsole.errors import ExitCode, ZconsoleError
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.timeline.feed import Update
from zconsole.ui.background import begin
from zconsole.ui.themed_app import ThemedApp
from zconsole.ui.view_state import ViewState
from zconsole.zfs.sources.base import Capabilities

if TYPE_CHECKING:
    from zconsole.actions.backend import ActionBackend
    from zconsole.timeline.feed import Feed
    from zconsole.ui.actions.session import FlowSession
    from zconsole.ui.actions.upkeep import Upkeep

    MakeBackend = Callable[[], ActionBackend]
    Flow = Callable[[FlowSession, str], Awaitable[object]]
    """Asks and acts, about the row of a key. Raises ZconsoleError."""


class ActionController:
    """Starts the flows of one console."""

    def __init__(self, feed: Feed, make_backend: MakeBackend | None = None) -> None:
        """Without ``make_backend`` the console only watches, and its action keys say why."""
        self.upkeep: Upkeep | None = None
        """What the console does beside its flows; None until that is loaded."""
        self._feed = feed
        self._make_backend = make_backend
        self._loading = asyncio.Lock()
        self._has_begun = self._at_swap = False
        """Whether it is loaded, and whether the swap that the console was opened for was begun."""

    def take(self, app: ThemedApp, update: Update) -> None:
        """See what a round came from; the first has what acts loaded, once it is on the screen."""
        state, source = app.view_state, update.capabilities
        if not self._has_begun and self._make_backend is not None:
            load = partial(self._loaded, app, self._make_backend)
            app.call_after_refresh(begin, app, load, group="load")
        self._has_begun = True
        pool, key = state.options.swap_at or ("", "")
        if not self._at_swap and any(frame.pool == pool for frame in update.frames):
            self._at_swap, state.pool = True, pool
            app.call_after_refresh(self.start, app, "swap", key)
        # Of a recording nobody expects that it can be changed: no action is offered.
        state.denied = self._why_denied(state, source) if source.live else None

    def _why_denied(self, state: ViewState, source: Capabilities | None) -> str:
        """Why nothing may be changed; empty when it may."""
        acts = "" if self.upkeep is None else self.upkeep.session.backend.denied
        none = "" if self._make_backend else "this pool can only be watched from here"
        return state.why_denied(source, acts) or none

    def asks_to_leave(self, code: ExitCode) -> bool:
        """Ask before quitting with ``code``, where something goes on or ends; whether it does."""
        return self.upkeep is not None and self.upkeep.asks_to_leave(code)

    def start(self, app: ThemedApp, flow: str, key: str | None) -> None:
        """Start a flow about the row of this key; say so where it cannot be."""
        state = app.view_state
        if not app.main_on_top:
            return
        if state.frame is None:
            app.notify("no pool was sampled yet; try again in a moment", timeout=4)
        elif (make_backend := self._make_backend) is None:
            none = "no log of commands: " if flow == "log" else ""
            why = self._why_denied(state, state.source)
            app.notify(f"{none}{why}", severity="warning", timeout=4, markup=False)
        else:
            app.begin_flow(partial(self._run, app, make_backend, flow, key or ""))

    async def _run(self, app: ThemedApp, make_backend: MakeBackend, flow: str, key: str) -> None:
        """Go through a flow, and show what it could not do."""
        try:
            upkeep = await self._loaded(app, make_backend)
            try:
                await _flows()[flow](upkeep.session, key)
            finally:
                upkeep.look_soon()
        except ZconsoleError as error:
            app.flow_failed()
            app.notify(str(error), severity="error", markup=False)

    async def _loaded(self, app: ThemedApp, make_backend: MakeBackend) -> Upkeep:
        """What acts, loaded the first time, in a thread while the console goes on."""
        async with self._loading:
            if self.upkeep is None:
                self.upkeep = await in_daemon_thread(partial(self._load, app, make_backend))
                self._feed.contributor = self.upkeep
                begin(app, self.upkeep.look_at_tunables, group="tuned")
                begin(app, self.upkeep.tidy_lights, group="lights")
        return self.upkeep

    def _load(self, app: ThemedApp, make_backend: MakeBackend) -> Upkeep:
        from zconsole.ui.actions.session import FlowSession
        from zconsole.ui.actions.upkeep import Upkeep
        from zconsole.ui.swap.swap_watch import SwapWatch

        _flows()
        state, backend = app.view_state, make_backend()
        swaps = SwapWatch(state.options.swap, backend, lambda: state.frames)
        return Upkeep(FlowSession(app, self._feed, backend, swaps))


def _flows() -> Mapping[str, Flow]:
    """The flow of each action key, by the argument that its row in the table of keys has."""
    from zconsole.ui.actions.log_flow import log_flow
    from zconsole.ui.actions.menu import actions_flow, change_disk
    from zconsole.ui.actions.replace_flow import replace_flow
    from zconsole.ui.actions.scan_flow import scans_flow
    from zconsole.ui.actions.tunables_flow import tunables_flow

    return {
        "actions": actions_flow,
        "scans": scans_flow,
        "replace": replace_flow,
        "tunables": tunables_flow,
        "rebalance": _rebalance,
        "swap": change_disk,
        "log": log_flow,
    }


async def _rebalance(session: FlowSession, key: str) -> None:
    """Rebalance the pool on show; its screens take a moment to load."""
    flow = await in_daemon_thread(_rebalance_flow)
    await flow(session, key)


def _rebalance_flow() -> Flow:
    from zconsole.ui.rebalance.flow import rebalance_flow

    return rebalance_flow
