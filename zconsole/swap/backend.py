"""What a console needs to lead through a swap, beside what acts on pools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from zconsole.diagnosis.device_errors.probes import smart_of
from zconsole.hardware.hands import Hands
from zconsole.swap.onlooker import SmartOf
from zconsole.swap.store import SwapStore
from zconsole.system.async_process import ProcessRunner
from zconsole.system.host import boot_id
from zconsole.system.patient import in_time
from zconsole.system.state_dir import StateError, state_dir, state_dirs


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
