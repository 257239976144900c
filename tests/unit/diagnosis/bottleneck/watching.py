"""Watching a simulated pool for a while, as any source would show it."""

from __future__ import annotations

from zconsole.sim.source import World
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session


def watched(scenario: str, seed: int, seconds: float = 30.0, step: float = 2.0) -> Frame:
    """Return the frame after ``seconds``, with a sample every ``step`` simulated seconds."""
    world, session = World(scenario, seed), Session(flags=("DEMO",))
    elapsed = 0.0
    while True:
        world.advance(elapsed)
        frame = session.advance(world.raws())[0]
        if elapsed >= seconds:
            return frame
        elapsed += step
