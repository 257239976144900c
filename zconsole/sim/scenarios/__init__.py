"""Named scenarios; ``zconsole demo --list`` prints their names."""

from __future__ import annotations

from zconsole.errors import NotFoundError
from zconsole.sim.build import Scenario
from zconsole.sim.scenarios import healthy, limits, lively, other, reports, trouble

_ALL: tuple[Scenario, ...] = (
    *lively.SCENARIOS,
    *trouble.SCENARIOS,
    *reports.SCENARIOS,
    *limits.SCENARIOS,
    *other.SCENARIOS,
    *healthy.SCENARIOS,
)
DEFAULT = _ALL[0].name


def names() -> tuple[str, ...]:
    """Every scenario's name, the default first."""
    return tuple(scenario.name for scenario in _ALL)


def listing() -> tuple[Scenario, ...]:
    """Every scenario, the default first."""
    return _ALL


def find(name: str) -> Scenario:
    """The scenario of that name. Raises NotFoundError."""
    for scenario in _ALL:
        if scenario.name == name:
            return scenario
    raise NotFoundError(f"no scenario {name!r}; `zconsole demo --list` names them")
