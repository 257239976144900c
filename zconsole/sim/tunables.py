"""Module parameters the simulated pool obeys."""

from __future__ import annotations

from zconsole.pool.version import parse_version
from zconsole.tunables.catalog import HISTORICAL, TUNABLES

SORTED = (0, 8)
"""From here on scans are sorted; before they were throttled by parameters that are gone now."""


class Tunables(dict[str, int]):
    """The parameters of one simulated kernel: name to live value."""

    def __missing__(self, name: str) -> int:
        """0, for a parameter that this version does not have."""
        return 0


def defaults(version: str) -> Tunables:
    """What a kernel with this OpenZFS begins with, as far as its source gives a value."""
    running = parse_version(version)
    known = {tunable.name: tunable.default(running) for tunable in TUNABLES}
    if running < SORTED:
        known |= {name: row["default"] for name, row in HISTORICAL.items()}
    return Tunables({name: value for name, value in known.items() if value is not None})
