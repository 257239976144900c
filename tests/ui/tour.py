"""The main screens of the console, reached by keys on a simulated pool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from tests.ui.actions.acting import Acting, acting
from tests.ui.rebalance.steps import running, to_options, to_plan, to_tree
from zconsole.zfs.sources.replay import Playback

Way = Callable[[Acting], Awaitable[object]]
"""Goes to a screen from the main screen."""


def keys(*pressed: str) -> Way:
    """Return the way by these keys."""

    async def _way(a: Acting) -> None:
        await a.press(*pressed)

    return _way


def on_disk(*pressed: str) -> Way:
    """Return the way by these keys, with the cursor on a disk."""

    async def _way(a: Acting) -> None:
        await a.press("g", *["j"] * 6, *pressed)

    return _way


def zoomed(pane: str) -> Way:
    """Return the way to a pane on the whole screen."""

    async def _way(a: Acting) -> None:
        a.app.main_screen.action_show_pane(pane)
        await a.press("z")

    return _way


async def _log(a: Acting) -> None:
    """Run a command, so that there is a line in the log, and open the log."""
    await a.press("S", "g", "j", "enter", "right", "enter", "escape", "L")


async def _replay(a: Acting) -> None:
    """Show a paused recording."""
    now = a.app.view_state.frame.t
    a.app.view_state.playback = Playback(paused=True, t=now, span=(now - 600, now + 1800))
    await a.pass_time(1, 1)


class Stop(NamedTuple):
    """One screen."""

    name: str
    scenario: str
    way: Way


TOUR = (
    Stop("board", "resilver", keys()),
    Stop("detail", "resilver", on_disk("enter")),
    Stop("scan", "resilver", zoomed("scan")),
    Stop("legend", "resilver", keys("question_mark", "question_mark")),
    Stop("confirm", "resilver", on_disk("A", "j")),
    Stop("actions", "resilver", on_disk("A")),
    Stop("tunables", "resilver", keys("T")),
    Stop("picker", "resilver", keys("t")),
    Stop("filter", "resilver", keys("slash")),
    Stop("replay", "resilver", _replay),
    Stop("events", "flaky", zoomed("events")),
    Stop("overview", "two-pools", keys("o")),
    Stop("plan", "mirror-scrub", keys("S", "j", "enter")),
    Stop("scans", "mirror-scrub", keys("S")),
    Stop("log", "mirror-scrub", _log),
    Stop("what-if", "added-vdev", keys("w")),
    Stop("folders", "added-vdev", to_tree),
    Stop("options", "added-vdev", to_options),
    Stop("rebalance-plan", "added-vdev", to_plan),
    Stop("job", "added-vdev", running),
    Stop("chassis", "swap", keys("c")),
)
"""Stops of one scenario follow each other on one console; those that leave traces come last."""
SCENARIOS = tuple(dict.fromkeys(stop.scenario for stop in TOUR))


@asynccontextmanager
async def under_way(scenario: str, size: tuple[int, int]) -> AsyncIterator[Acting]:
    """Open a console after some minutes of a scenario."""
    async with acting(scenario, size=size) as a:
        await a.pass_time(120, 10)
        yield a


@asynccontextmanager
async def at(stop: Stop, size: tuple[int, int]) -> AsyncIterator[Acting]:
    """Open a console that shows one screen."""
    async with under_way(stop.scenario, size) as a:
        await stop.way(a)
        await a.rest()
        yield a


async def stops(scenario: str, size: tuple[int, int]) -> AsyncIterator[tuple[str, Acting]]:
    """Take one console to each screen of a scenario."""
    async with under_way(scenario, size) as a:
        for stop in (stop for stop in TOUR if stop.scenario == scenario):
            await stop.way(a)
            await a.rest()
            yield stop.name, a
            await a.home()
            await a.press("escape", "escape")  # leave a zoomed pane, or a filter
