"""Simulated pools at the first sample of a scenario."""

from __future__ import annotations

import copyreg
import pickle
from functools import cache
from threading import RLock

from zconsole.sim.source import World

copyreg.pickle(type(RLock()), lambda _: (RLock, ()))


def world_of(scenario: str, seed: int = 1) -> World:
    """Return a new world; the time before its first sample is simulated only once."""
    made: World = pickle.loads(_packed(scenario, seed))
    return made


@cache
def _packed(scenario: str, seed: int) -> bytes:
    return pickle.dumps(World(scenario, seed))
