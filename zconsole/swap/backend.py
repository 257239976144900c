"""What a console needs to lead through a swap, beside what acts on pools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from zconsole.diagnosis.device_errors.probes import smart_of
from zconsole.swap.onlooker import SmartOf
from zconsole.swap.store import SwapStore
from zconsole.system.async_process import ProcessRunner
from zconsole.system.host import boot_id
from zconsole.system.patient import in_time
from zconsole.system.state_dir import StateError, state_dir, state_dirs


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

    def wait(self, seconds: float) -> str:
        """Let that much time pass at once; says so."""


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
        directory = in_time(partial(state_dir, create=True)) if leads else None
    except StateError:
        directory = None  # what is saved then says so
    return SwapStore(directory, state_dirs())
