"""A console that may act, on a simulated pool whose time a test advances."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC

from tests.ui.actions.scripted import ScriptedFeed, kept
from tests.ui.fakes import Clock, screen_text, shipped, until
from tests.worlds import world_of
from zconsole.actions.backend import ActionBackend
from zconsole.pool.chassis import Lights
from zconsole.sim.backends.actions import simulated_backend
from zconsole.sim.places import lights
from zconsole.sim.source import World
from zconsole.timeline.feed import Update
from zconsole.ui.actions.controller import ActionController
from zconsole.ui.actions.upkeep import Upkeep
from zconsole.ui.app import Console
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.graph import UNICODE
from zconsole.zfs.sources.base import Capabilities

RUN = ("tab", "enter")
"""Keys that run the plan on the screen."""


class SteppedFeed(ScriptedFeed):
    """A feed whose rounds a console awaits, one whenever ``step`` is called or a flow wants one."""

    def __init__(self, world: World, capabilities: Capabilities | None = None) -> None:
        super().__init__(world, capabilities)
        self.queue: asyncio.Queue[Update] = asyncio.Queue()
        self.clock = Clock()
        self.unseen = False
        """Whether the terminal is still busy, so that a round is processed but not drawn."""

    def step(self, seconds: float = 1.0) -> None:
        """Advance simulated time, and provide a round."""
        self.clock.now += seconds
        self.queue.put_nowait(self.later(seconds))

    @property
    def pace(self) -> float:
        return self.interval

    async def next(self) -> Update | None:
        self._begun = None  # rounds come when stepped, not at an interval
        return await super().next()

    async def sample(self) -> Update | None:
        return await self.queue.get()

    async def lights(self) -> Lights:
        return lights(self.world.pools, self.world.lit)


class Acting:
    """The console, its pilot, its simulated world and what it was asked to do."""

    def __init__(self, app: Console, pilot, feed: SteppedFeed, backend: ActionBackend) -> None:
        self.app, self.pilot, self.feed, self.backend = app, pilot, feed, backend

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.rest()

    async def typed(self, *keys: str) -> None:
        """Press keys one after another, without a rest between them, as they only move or type."""
        await self.pilot.press(*keys)
        await self.rest()

    async def read(self, done: Awaitable[object]) -> str:
        """Await ``done``, then return the screen's text; drawing it takes as long as a key."""
        await done
        return self.screen

    async def rest(self) -> None:
        """Let plans, flows and paints come to rest."""
        await self.pilot.pause()
        while any(w.group == "plans" and not w.is_finished for w in self.app.workers):
            self.feed.step()  # of two rounds at once the console may have seen only one
            await self.pilot.pause()
        for _ in range(100):  # a list is filled late on a busy machine, and some never are
            if all(w.group != "fill" or w.is_finished for w in self.app.workers):
                break
            await self.pilot.pause(0.01)
        await until(self.pilot, self.is_laid_out)

    def is_laid_out(self) -> bool:
        """Return whether the top screen can be read, or the console has ended."""
        app = self.app
        return not app.is_running or app.screen._compositor.size == app.size

    async def pass_time(self, seconds: float, step: float = 60.0) -> None:
        """Let rounds pass, of which only the last is drawn."""
        for left in reversed(range(int(seconds / step))):
            self.feed.unseen = left > 0
            self.feed.step(step)
            await self.kept()
            await self.pilot.pause()
        await self.rest()

    async def kept(self) -> None:
        """Wait until the keeper has done everything that is due now."""
        await kept(self.backend)

    async def home(self) -> None:
        """Press Esc until the main screen is on top."""
        while not self.app.main_on_top:
            await self.press("escape")

    async def resize(self, size: tuple[int, int]) -> None:
        """Resize the terminal."""
        await self.pilot.resize_terminal(*size)
        await self.rest()

    async def to(self, name: str) -> None:
        """Move the cursor to a device, or to the vdev with exactly this name."""
        self.app.devices.focus()
        await self.pilot.press("g")
        for _ in range(60):
            item = self.app.devices.current
            vdev = item.row.vdev if item is not None and item.row is not None else None
            if vdev is not None and (
                vdev.name == name or (not vdev.children and name in vdev.name)
            ):
                return
            await self.pilot.press("j")
        raise AssertionError(f"no {name} on the screen")

    @property
    def session(self) -> Upkeep:
        """Return the session of its flows, which must be loaded by now."""
        assert self.app.actions is not None
        assert self.app.actions.session is not None
        return self.app.actions.session

    def use(self, backend: ActionBackend) -> None:
        """Replace the backend of actions."""
        self.session.backend = backend
        self.session.swaps = replace(self.session.swaps, machine=backend, _session=None)

    @property
    def screen(self) -> str:
        return screen_text(self.app)

    @property
    def log(self) -> list[dict]:
        return self.backend.log.records  # type: ignore[attr-defined]


@asynccontextmanager
async def acting(
    scenario: str = "resilver",
    size: tuple[int, int] = (100, 40),
    capabilities: Capabilities | None = None,
    notifications: bool = False,
    sampled: bool = True,
    **options: object,
) -> AsyncIterator[Acting]:
    """Open a console on a scenario, with its first frame shown unless ``sampled`` is false."""
    simulated = world_of(scenario)
    feed = SteppedFeed(simulated, capabilities)
    backend = simulated_backend(simulated)
    settings = ConsoleOptions(host="nas1", zone=UTC, clock=feed.clock, **options)  # type: ignore[arg-type]
    actions = ActionController(feed, lambda: backend)
    app = Console(
        feed,
        settings,
        DisplayFormat(UNICODE, zone=UTC),
        shipped(),
        actions,
        writable=lambda: not feed.unseen,
    )
    app.theme = "dark"
    if sampled:
        feed.step(0.0)
    async with app.run_test(size=size, notifications=notifications) as pilot:
        made = Acting(app, pilot, feed, backend)
        await made.rest()
        while sampled and actions.session is None:
            await pilot.pause()
        yield made


def commands(a: Acting) -> list[list[str]]:
    return [step["argv"][1:] for r in a.log if r["event"] == "action" for step in r["steps"]]


async def pick(a: Acting, text: str) -> None:
    """Choose a line of the open menu, or of the menu of unavailable actions behind it."""
    await reach(a, text)
    await a.press("enter")


async def reach(a: Acting, text: str) -> None:
    """Put the cursor on the menu line that begins with a text."""
    if _row(a, text) is None:
        await a.press("G", "enter")
    row = _row(a, text)
    assert row is not None, a.screen
    await a.press("g")
    await a.typed(*["j"] * row)


def _row(a: Acting, text: str) -> int | None:
    view = a.app.screen.view
    lines = ("".join(s.text for s in view.line_at(n)) for n in range(view.line_count()))
    starts = (
        n for n, line in enumerate(lines) if line.strip(f" {UNICODE.pointer}").startswith(text)
    )
    return next(starts, None)
