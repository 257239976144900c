"""Golden text screens of the simulated pools, reached by pressing keys."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.ui.styled import styled
from tests.ui.tour import TOUR, at

HERE = Path(__file__).parent
KEPT = {"legend": (80, 24), "tunables": (120, 40), "plan": (60, 15), "replay": (120, 40)}
"""Screens in sizes that tests/lock does not cover."""
SHOTS = tuple((stop, KEPT[stop.name]) for stop in TOUR if stop.name in KEPT)


def path(name: str, size: tuple[int, int]) -> Path:
    """Return the file of a screen in a size."""
    return HERE / f"{name}-{size[0]}x{size[1]}.txt"


async def draw(stop, size: tuple[int, int]) -> str:
    """Return text and styles of a screen."""
    async with at(stop, size) as a:
        return styled(a.app)


def write_all() -> None:
    """Draw every screen anew."""
    for stop, size in SHOTS:
        path(stop.name, size).write_text(asyncio.run(draw(stop, size)), encoding="utf-8")
