"""The main screens of the console, each come to by keys over a simulated pool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from tests.ui.actions.acting import Acting, acting
from tests.ui.rebalance.steps import running, to_options, to_plan, to_tree
from zconsole.zfs.sources.playback import Playback

Way = Callable[[Acting], Awaitable[object]]
"""How one comes to a screen from the board."""


def keys(*pressed: str) -> Way:
    """The way by these keys."""

    async def _way(a: Acting) -> None:
        await a.press(*pressed)

    return _way


def on_disk(*pressed: str) -> Way:
    """The way by keys, with the cursor on a disk."""

    async def _way(a: Acting) -> None:
        await a.press("g", *["j"] * 6, *pressed)

    return _way


def zoomed(pane: str) -> Way:
    """The way to a pane on the whole screen."""

    async def _way(a: Acting) -> None:
        a.app.main_screen.action_show_pane(pane)
        await a.press("z")

    return _way


async def _log(a: Acting) -> None:
    """A command, so that there is a line in the log."""
    await a.press("S", "g", "j", "enter", "right", "enter", "escape", "L")


async def _replay(a: Acting) -> None:
    """A recording that is paused."""
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
    Stop("events", "flaky", zoomed("events")),
    Stop("scan", "resilver", zoomed("scan")),
    Stop("overview", "two-pools", keys("o")),
    Stop("legend", "resilver", keys("question_mark", "question_mark")),
    Stop("plan", "mirror-scrub", keys("S", "enter")),
    Stop("confirm", "resilver", on_disk("A", "j")),
    Stop("actions", "resilver", on_disk("A")),
    Stop("scans", "mirror-scrub", keys("S")),
    Stop("tunables", "resilver", keys("T")),
    Stop("folders", "added-vdev", to_tree),
    Stop("options", "added-vdev", to_options),
    Stop("rebalance-plan", "added-vdev", to_plan),
    Stop("job", "added-vdev", running),
    Stop("chassis", "swap", keys("c")),
    Stop("log", "mirror-scrub", _log),
    Stop("replay", "resilver", _replay),
    Stop("picker", "resilver", keys("t")),
    Stop("what-if", "added-vdev", keys("w")),
    Stop("filter", "resilver", keys("slash")),
)


@asynccontextmanager
async def at(stop: Stop, size: tuple[int, int]) -> AsyncIterator[Acting]:
    """A console that shows a screen, after some minutes of its scenario."""
    async with acting(stop.scenario, size=size) as a:
        await a.pass_time(120, 10)
        await stop.way(a)
        await a.rest()
        yield a
