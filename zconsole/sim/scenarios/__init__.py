"""Named scenarios; ``zconsole demo --list`` prints them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from zconsole.errors import NotFoundError
from zconsole.sim.build import Scenario

_MODULES = ("lively", "trouble", "reports", "limits", "other")
"""Modules with scenarios, in the order of ``--list``. ``find`` loads them one by one, as needed."""
DEFAULT = "resilver"


def names() -> tuple[str, ...]:
    """Return the names of all scenarios, the default first."""
    return tuple(scenario.name for scenario in _each())


def listed() -> Iterator[str]:
    """Return a line for each scenario: its name, then its description."""
    width = max(map(len, names()))
    return (f"{scenario.name:<{width}}  {scenario.about}" for scenario in _each())


def find(name: str) -> Scenario:
    """Return the scenario of this name. Raises NotFoundError if there is none."""
    for scenario in _each():
        if scenario.name == name:
            return scenario
    raise NotFoundError(f"no scenario {name!r}; see zconsole demo --list")


def _each() -> Iterator[Scenario]:
    for module in _MODULES:
        found: tuple[Scenario, ...] = import_module(f"{__name__}.{module}").SCENARIOS
        yield from found
