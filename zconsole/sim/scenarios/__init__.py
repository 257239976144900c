"""Named scenarios; ``zconsole demo --list`` prints them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from zconsole.errors import NotFoundError
from zconsole.sim.build import Scenario

_MODULES = ("lively", "trouble", "reports", "limits", "other")
"""In the order of ``--list``; one is loaded when a scenario was not found in those before it."""
DEFAULT = "resilver"


def names() -> tuple[str, ...]:
    """Every scenario's name, the default first."""
    return tuple(scenario.name for scenario in _each())


def listed() -> Iterator[str]:
    """A line for each scenario: its name, then what it shows."""
    width = max(map(len, names()))
    return (f"{scenario.name:<{width}}  {scenario.about}" for scenario in _each())


def find(name: str) -> Scenario:
    """The scenario of that name. Raises NotFoundError."""
    for scenario in _each():
        if scenario.name == name:
            return scenario
    raise NotFoundError(f"no scenario {name!r}; see zconsole demo --list")


def _each() -> Iterator[Scenario]:
    for module in _MODULES:
        found: tuple[Scenario, ...] = import_module(f"{__name__}.{module}").SCENARIOS
        yield from found
