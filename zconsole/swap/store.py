"""Checklists on disk, one file each: they survive the session and a reboot.

Whoever holds the lock of a checklist leads it; others read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.diagnosis.device_errors.probes import smart_of
from zconsole.swap.checklist import OPEN, WAYS, Checklist
from zconsole.system.async_process import ProcessRunner
from zconsole.system.host import boot_id
from zconsole.system.patient import PATIENCE, made_state_dir
from zconsole.system.record_file import LockedStore
from zconsole.system.records import from_json, parse_json
from zconsole.system.state_dir import StateError, remove, state_dirs

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

    def save(self, swap: Checklist) -> bool:
        """Keep a checklist; returns once it survives a power cut. Raises StateError.

        False while another process leads it.
        """
        if self.memory is not None:
            self.memory[swap.id] = swap
            return True
        name = f"swap-{swap.id}.json"
        if not _NAME.fullmatch(name) or not self.leads(swap.id):
            return False
        self.put(name, dumped(swap), f"swap-{swap.id}.lock")
        if swap.state != OPEN:
            self._forget_old()
        return True

    def read(self) -> tuple[Checklist, ...]:
        """Every readable checklist, the newest first. Raises StateError without an answer."""
        if self.memory is not None:
            return newest_first(self.memory.values())
        return newest_first(self.read_files(_NAME, _load, MOST_BYTES, PATIENCE))

    def _forget_old(self) -> None:
        closed = [swap for swap in self.read() if swap.state != OPEN]
        for swap in closed[KEPT:]:
            for suffix in ("json", "lock"):
                if self.directory is not None:
                    self.in_time(partial(remove, self.directory / f"swap-{swap.id}.{suffix}"))


def newest_first(found: Iterable[Checklist]) -> tuple[Checklist, ...]:
    """Checklists in the order in which they are shown."""
    return tuple(sorted(found, key=lambda swap: -swap.begun))


def dumped(swap: Checklist) -> bytes:
    """A checklist as JSON."""
    return json.dumps({"format": FORMAT, "checklist": asdict(swap)}).encode("ascii")


def loaded(data: bytes) -> Checklist:
    """The checklist in JSON. Raises ValueError for anything else."""
    document = parse_json(data)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError("the checklist of another version")
    return from_json(Checklist, document.get("checklist"), "checklist")


def _load(path: Path, data: bytes) -> Checklist:
    swap = loaded(data)
    if path.name != f"swap-{swap.id}.json" or swap.mode not in WAYS or swap.at not in swap.steps:
        raise ValueError("not the checklist of its name, or one of another version")
    return swap


SmartOf = Callable[[str], Awaitable[SmartCounts | None]]
"""What the disk at a device node says of itself; None where it says nothing in time."""


class BayContent(NamedTuple):
    """One bay of a shelf."""

    bay: str
    disk: str
    """What sits in it, in words; empty while it is empty."""


class Hands(Protocol):
    """What a person does at the shelf, for which only a simulated machine has a program."""

    def bays(self) -> Sequence[BayContent]:
        """Every bay, in order."""

    def drawer(self) -> Sequence[str]:
        """The disks that lie beside the machine, in words."""

    def pull(self, bay: str) -> str:
        """Pull the disk of a bay into the drawer; says what was done.

        Raises ZconsoleError where the bay is empty or there is none.
        """

    def insert(self, number: int, bay: str) -> str:
        """Put a disk of the drawer, by its place there, into an empty bay; says what was done.

        Raises ZconsoleError where that can't be.
        """

    def wait(self, pool: str) -> str:
        """Let time pass at once, to the end of what runs on a pool, else a while; says so."""


@dataclass(frozen=True, slots=True)
class SwapBackend:
    """Checklists and disks of one machine, or of a simulated shelf."""

    make_store: Callable[[bool], SwapStore]
    """Opens the store: to lead a checklist (True), or only to read. It may wait for a disk."""
    smart_of: SmartOf
    boot: str = ""
    """The id of this boot."""
    hands: Hands | None = None
    """What a person does at the shelf; None where that takes a person."""


def live_swap() -> SwapBackend:
    """The checklists and disks of this machine."""
    return SwapBackend(_store, partial(smart_of, ProcessRunner()), boot_id() or "")


def _store(leads: bool) -> SwapStore:
    """The store of this user; one that keeps nothing where there is no directory for it."""
    try:
        directory = made_state_dir() if leads else None
    except StateError:
        directory = None  # what is saved then says so
    return SwapStore(directory, state_dirs())
