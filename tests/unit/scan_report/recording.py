"""A recording of a simulated scan, optionally with a tunable changed during it."""

from __future__ import annotations

import json
from pathlib import Path

from zconsole.sim.backends.actions import SimulatedParameters
from zconsole.sim.source import World


def record(path: Path, scenario: str, seconds: int, step: int = 5, seed: int = 1, **change) -> Path:
    """Record samples to a file; ``change`` is NAME=(second, value)."""
    world = World(scenario, seed)
    lines = []
    for elapsed in range(0, seconds, step):
        for name, (at, value) in change.items():
            if at <= elapsed < at + step:
                SimulatedParameters(world).write(name, value)
        world.advance(float(elapsed))
        lines.extend(json.dumps(raw) + "\n" for raw in world.raws())
    path.write_text("".join(lines))
    return path
