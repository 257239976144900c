"""Checklists on disk, one file each: they survive the session and a reboot.

Whoever holds the lock of a checklist leads it; others read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from zconsole.swap.checklist import OPEN, STEPS, Checklist
from zconsole.system import state_dir
from zconsole.system.record_file import LockedStore
from zconsole.system.records import from_json, parse_json
from zconsole.system.state_dir import StateError

FORMAT = 1
MOST_BYTES = 4 * 2**20
KEPT = 50
"""Closed checklists that are kept for their reports, the newest."""
_NAME = re.compile(r"swap-([0-9a-f]{8})\.json", re.ASCII)


@dataclass(slots=True)
class SwapStore(LockedStore):
    """Where checklists are kept: in the state directory."""

    memory: dict[str, Checklist] | None = None
    """Keeps them instead until the console ends: for simulated pools."""

    def leads(self, name: str) -> bool:
        """Whether this process leads the checklist of this id, or does from now on.

        Raises StateError where it can't be known.
        """
        if self.memory is not None:
            return True
        if self.directory is None:
            raise StateError("there is no state directory: this swap is not remembered")
        return self.mine(f"swap-{name}.lock")

    def save(self, c: Checklist) -> bool:
        """Keep a checklist; returns once it survives a power cut. Raises StateError.

        False while another process leads it.
        """
        if self.memory is not None:
            self.memory[c.id] = c
            return True
        name = f"swap-{c.id}.json"
        if not _NAME.fullmatch(name) or not self.leads(c.id) or self.directory is None:
            return False
        path = self.directory / name
        self.patient.call(partial(self.write, path, dumped(c)))
        if c.state != OPEN:
            self.patient.call(self._forget_old)
        return True

    def read(self) -> tuple[Checklist, ...]:
        """Every readable checklist, the newest first. Raises StateError without an answer."""
        if self.memory is not None:
            return newest_first(self.memory.values())
        return self.patient.call(self._read)

    def _read(self) -> tuple[Checklist, ...]:
        return newest_first(self.kept(_NAME, _load, MOST_BYTES))

    def _forget_old(self) -> None:
        closed = [c for c in self._read() if c.state != OPEN]
        for c in closed[KEPT:]:
            if self.directory is not None:
                state_dir.remove(self.directory / f"swap-{c.id}.json")
                state_dir.remove(self.directory / f"swap-{c.id}.lock")


def newest_first(found: Iterable[Checklist]) -> tuple[Checklist, ...]:
    """Checklists in the order in which they are shown."""
    return tuple(sorted(found, key=lambda c: -c.begun))


def dumped(c: Checklist) -> bytes:
    """A checklist as JSON."""
    return json.dumps({"format": FORMAT, "checklist": asdict(c)}).encode("ascii")


def loaded(data: bytes) -> Checklist:
    """The checklist in JSON. Raises ValueError for anything else."""
    document = parse_json(data)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError("the checklist of another version")
    return from_json(Checklist, document.get("checklist"), "checklist")


def _load(path: Path, data: bytes) -> Checklist:
    c = loaded(data)
    if path.name != f"swap-{c.id}.json" or c.mode not in STEPS or c.at not in c.steps:
        raise ValueError("not the checklist of its name, or one of another version")
    return c
