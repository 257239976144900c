"""The screens of a guided swap on the simulated shelf, kept as text at two sizes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.ui.styled import styled
from tests.ui.swap.steps import Swapping, swapping

HERE = Path(__file__).parent
SIZES = ((60, 15), (80, 24))
SCREENS = ("choice", "pull", "wrong")
"""In the order one comes to them."""


def path(screen: str, size: tuple[int, int]) -> Path:
    """Where a screen of a size is kept."""
    return HERE / f"swap-{screen}-{size[0]}x{size[1]}.txt"


async def quiet(s: Swapping) -> str:
    """The screen without messages, which leave in real time, once it stays as it is."""
    before, now = "", styled(s.app)
    while now != before:
        s.app.messages.said.clear()
        s.app.messages_signal.publish(s.app.messages)
        await asyncio.sleep(0.1)  # a busy machine draws late
        await s.settled()
        before, now = now, styled(s.app)
    return now


async def draw(size: tuple[int, int]) -> dict[str, str]:
    """The text and looks of every screen on the way."""
    async with swapping(size) as s:
        await s.choose()
        choice = styled(s.app)
        await s.press("escape")
        await s.to_pull()
        pull = await quiet(s)
        await s.pull("Slot 08")
        wrong = await quiet(s)
    return dict(zip(SCREENS, (choice, pull, wrong), strict=True))


def write_all() -> None:
    """Draw every screen anew."""
    for size in SIZES:
        for name, text in asyncio.run(draw(size)).items():
            path(name, size).write_text(text, encoding="utf-8")
