"""Bugs of OpenZFS releases, from ``share/hazards.toml``, which names the commits that fix them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from zconsole.pool.model import Version, parse_version

TABLE = Path(__file__).parents[1] / "share" / "hazards.toml"


class Hazard(NamedTuple):
    """A bug that an action can trigger; hazards.toml explains each field."""

    actions: tuple[str, ...]
    happens: str
    do: str
    affected: tuple[tuple[Version, Version, str], ...]
    sources: Mapping[str, str]
    layout: str = ""

    def concerns(self, action: str, kinds: Iterable[str]) -> bool:
        """Whether a command can trigger it in a pool whose top-level vdevs are of these kinds."""
        known = any(f"{action} ".startswith(f"{each} ") for each in self.actions)
        return known and (not self.layout or any(kind.startswith(self.layout) for kind in kinds))

    def words(self, version: Version) -> str | None:
        """Describe the bug, its fix and what to do; None for a release without it."""
        for first, last, mended in self.affected:
            if first <= version[:3] <= last:
                running = ".".join(map(str, version))
                mends = f"fixed in {mended}" if mended else "not fixed in any release yet"
                return f"OpenZFS {running}: {self.happens} ({mends}): {self.do}"
        return None


def hazards(action: str, version: Version, kinds: Iterable[str] = ()) -> tuple[str, ...]:
    """Return warnings for an action on this release; empty for an unknown release."""
    found = (hazard.words(version) for hazard in HAZARDS if hazard.concerns(action, tuple(kinds)))
    return tuple(words for words in found if words)


HAZARDS = tuple(
    Hazard(
        **{
            **row,
            "actions": tuple(row["actions"]),
            "affected": tuple((*map(parse_version, (a, b)), c) for a, b, c in row["affected"]),
        }
    )
    for row in tomllib.loads(TABLE.read_text("utf-8"))["hazards"]
)
