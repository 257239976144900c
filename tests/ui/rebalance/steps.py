"""Steps to each screen of a rebalance, by keys."""

from __future__ import annotations

from collections.abc import Callable

from tests.ui.actions.acting import Acting
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.rebalance.folder_screen import FoldersScreen

SCENARIO = "added-vdev"


async def settled(a: Acting) -> None:
    """Wait until no plan is being made and no job is being steered."""
    for _ in range(1500):
        await a.rest()
        if not any(w.group in ("plan", "steer") and not w.is_finished for w in a.app.workers):
            break
        await a.pilot.pause(0.02)


async def until(a: Acting, seen: Callable[[], bool]) -> None:
    """Wait until ``seen`` returns true."""
    for _ in range(1500):
        if seen():
            await a.rest()
            return
        await a.pilot.pause(0.02)
    raise AssertionError(a.screen)


async def to_list(a: Acting) -> None:
    """Press B, which shows the list of jobs."""
    await a.press("B")
    await until(a, lambda: isinstance(a.app.screen, PickScreen))


async def to_tree(a: Acting, mark: bool = True) -> None:
    """Press B, choose a new job, and mark the films."""
    await to_list(a)
    await a.press("enter")
    await until(a, lambda: isinstance(a.app.screen, FoldersScreen) and len(a.app.screen._rows) > 1)
    if mark:
        await a.press("j", "j", "space")
    await a.rest()


async def to_options(a: Acting) -> None:
    """Go on to the options."""
    await to_tree(a)
    await a.press("enter")


async def to_plan(a: Acting) -> None:
    """Go on to the plan, and wait until it is made."""
    await to_options(a)
    await a.press("enter")
    await settled(a)


async def running(a: Acting) -> None:
    """Go on to the job, and start it."""
    await to_plan(a)
    await a.press("tab", "enter")
    await settled(a)
