"""The screens of a rebalance on the simulated pool, kept as text at several sizes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.ui.actions.acting import acting
from tests.ui.rebalance.steps import settled, to_tree
from tests.ui.styled import styled

HERE = Path(__file__).parent
SIZES = ((60, 15), (80, 24), (200, 50))
SCREENS = ("tree", "options", "plan", "job", "jobs", "main")
"""In the order one comes to them."""


def path(screen: str, size: tuple[int, int]) -> Path:
    """Where a screen of a size is kept."""
    return HERE / f"rebalance-{screen}-{size[0]}x{size[1]}.txt"


async def draw(size: tuple[int, int]) -> dict[str, str]:
    """The text and looks of every screen on the way."""
    async with acting("added-vdev", size=size) as a:
        await to_tree(a)
        tree = styled(a.app)
        await a.press("enter")
        options = styled(a.app)
        await a.press("enter")
        await settled(a)
        plan = styled(a.app)
        await a.press("tab", "enter")
        await settled(a)
        await a.pass_time(4 * 3600, 1800)
        await a.controller.jobs.look("storage")
        a.app.screen.update()  # type: ignore[attr-defined]
        await a.settle()
        job = styled(a.app)
        await a.press("escape")
        jobs = styled(a.app)
        await a.press("escape")
        a.feed.step(1.0)
        await a.settle()
        shown = (tree, options, plan, job, jobs, styled(a.app))
    return dict(zip(SCREENS, shown, strict=True))


def write_all() -> None:
    """Draw every screen anew."""
    for size in SIZES:
        for name, text in asyncio.run(draw(size)).items():
            path(name, size).write_text(text, encoding="utf-8")
