"""Starts the flows of the action keys.

The modules of the flows take as long to load as the rest of the console, so imports inside
functions delay them until the first frame is on the screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from zconsole.errors import ExitCode, ZconsoleError
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.timeline.feed import Update
from zconsole.ui.messages import KEY
from zconsole.ui.themed_app import FLOW, ThemedApp, begin
from zconsole.ui.view_state import ViewState
from zconsole.zfs.sources.base import Capabilities

if TYPE_CHECKING:
    from zconsole.actions.backend import ActionBackend
    from zconsole.timeline.feed import Feed
    from zconsole.ui.actions.session import FlowSession
    from zconsole.ui.actions.upkeep import Upkeep

    MakeBackend = Callable[[], ActionBackend]
    Flow = Callable[[FlowSession, str], Awaitable[object]]
    """Runs a flow for the row with this key. Raises ZconsoleError."""


class ActionController:
    """Starts the flows of one console, and the upkeep that runs beside them."""

    def __init__(self, feed: Feed, make_backend: MakeBackend | None = None) -> None:
        """Without ``make_backend`` the console is read-only, and its action keys say why."""
        self.session: Upkeep | None = None
        """The session of the flows, with its upkeep; None until it is loaded."""
        self._feed = feed
        self._make_backend = make_backend
        self._loading = asyncio.Lock()
        self._has_begun = self._at_swap = False
        """Whether loading has begun, and whether the swap named on the command line was started."""

    def take(self, app: ThemedApp, update: Update) -> None:
        """Process a round of frames: update ``denied``; the first round also starts the loading."""
        state, source = app.view_state, update.capabilities
        if not self._has_begun and self._make_backend is not None:
            load = partial(self._loaded, app, self._make_backend)
            app.call_after_refresh(begin, app, load, group="load")
        self._has_begun = True
        pool, key = state.options.swap_at or ("", "")
        if not self._at_swap and any(frame.pool == pool for frame in update.frames):
            self._at_swap, state.pool = True, pool
            app.call_after_refresh(self.start, app, "swap", key)
        # A recording can't be changed, and nobody expects it to: None hides all actions.
        state.denied = self._why_denied(state, source) if source.live else None

    def _why_denied(self, state: ViewState, source: Capabilities | None) -> str:
        """Return why nothing may be changed; empty if changes are allowed."""
        acts = "" if self.session is None else self.session.backend.denied
        none = "" if self._make_backend else "this pool can only be watched from here"
        return state.why_denied(source, acts) or none

    def asks_to_leave(self, code: ExitCode) -> bool:
        """Ask before quitting with ``code`` if work is left behind; return whether it asked."""
        return self.session is not None and self.session.asks_to_leave(code)

    def start(self, app: ThemedApp, flow: str, key: str) -> None:
        """Start a flow for the row with this key, or notify the operator why it can't start."""
        state = app.view_state
        if not app.main_on_top:
            return
        if state.frame is None:
            app.answer("no pool was sampled yet; try again in a moment", 4)
        elif (make_backend := self._make_backend) is None:
            none = "no log of commands: " if flow == "log" else ""
            why = self._why_denied(state, state.source)
            app.notify(f"{none}{why}", severity="warning", timeout=4, about=KEY)
        else:
            keys = state.look.keys.titled(flow).keys
            app.begin_flow(partial(self._run, app, make_backend, flow, key), keys)

    async def _run(self, app: ThemedApp, make_backend: MakeBackend, flow: str, key: str) -> None:
        """Run a flow, and notify the operator of its errors."""
        try:
            session = await self._loaded(app, make_backend)
            try:
                await _flows()[flow](session, key)
            finally:
                session.reread_soon()  # shows what the flow has changed
        except ZconsoleError as error:
            app.flow_failed()
            app.notify(str(error), severity="error", about=FLOW)

    async def _loaded(self, app: ThemedApp, make_backend: MakeBackend) -> Upkeep:
        """Return the session; the first call loads it in a thread, without blocking the console."""
        async with self._loading:
            if self.session is None:
                self.session = await in_daemon_thread(partial(self._load, app, make_backend))
                self._feed.contributor = self.session
                begin(app, self.session.look_at_tunables, group="tuned")
                begin(app, self.session.tidy_lights, group="lights")
        return self.session

    def _load(self, app: ThemedApp, make_backend: MakeBackend) -> Upkeep:
        from zconsole.ui.actions.upkeep import Upkeep
        from zconsole.ui.swap.swap_watch import SwapWatch

        # Called only to import the flows now, in this thread.
        _flows()
        state, backend = app.view_state, make_backend()
        make_swaps = state.options.swap
        swaps = SwapWatch(make_swaps and make_swaps(), backend, lambda: state.frames)
        return Upkeep(app, self._feed, backend, swaps)


def _flows() -> Mapping[str, Flow]:
    """Return the flow of each action key, by the argument in the key's row of the key table."""
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
    """Run the rebalance flow; its screens are imported in a thread, as they take a moment."""
    flow = await in_daemon_thread(_rebalance_flow)
    await flow(session, key)


def _rebalance_flow() -> Flow:
    from zconsole.ui.rebalance.flow import rebalance_flow

    return rebalance_flow
