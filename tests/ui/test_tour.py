"""Screens of the tour compared with the golden ones; ``python -m tests.golden`` draws them anew."""

from __future__ import annotations

import pytest

from tests.golden.tour import SHOTS, draw, path
from zconsole.sim import simulation

STEPS = simulation.advance.__defaults__
"""The simulation's own default, with which the screens were drawn; other tests use fewer."""


@pytest.mark.parametrize(
    ("stop", "size"), [pytest.param(*shot, id=path(shot[0].name, shot[1]).stem) for shot in SHOTS]
)
async def test_screen(stop, size, monkeypatch):
    monkeypatch.setattr(simulation.advance, "__defaults__", STEPS)
    assert await draw(stop, size) == path(stop.name, size).read_text(encoding="utf-8")
