"""The way to each screen of a rebalance, by keys."""

from __future__ import annotations

from tests.ui.actions.acting import Acting


async def settled(a: Acting) -> str:
    """The screen once nothing is being made or steered any more."""
    for _ in range(400):
        await a.pilot.pause(0.02)
        if not any(w.group in ("plan", "steer") and not w.is_finished for w in a.app.workers):
            break
    return await a.settle()


async def to_tree(a: Acting, mark: bool = True) -> str:
    """B and new; the films marked."""
    await a.press("B", "enter")
    await a.pilot.pause(0.3)
    if mark:
        await a.press("j", "j", "space")
    return await a.settle()


async def to_options(a: Acting) -> str:
    """On to what it is for."""
    await to_tree(a)
    return await a.press("enter")


async def to_plan(a: Acting) -> str:
    """On to the plan, made."""
    await to_options(a)
    await a.press("enter")
    return await settled(a)


async def running(a: Acting) -> str:
    """On to the job, started."""
    await to_plan(a)
    await a.press("tab", "enter")
    return await settled(a)
