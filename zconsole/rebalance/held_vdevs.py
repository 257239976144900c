"""Records of vdevs that take no new writes while a job runs: what the keeper has set, for whom.

A job asks for it once it runs (``want``), and waits until the keeper has set ``allocating=off`` on
each of its full vdevs, or left one alone. The keeper (``actions/held_vdevs_keeper.py``) notes what
it sets before it does so, and undoes nothing else: a vdev that somebody else set is theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from zconsole.system.record_file import LockedRecord
from zconsole.system.state_dir import state_dir

NAME, LOCK, KEEPER = "held-vdevs.json", "held-vdevs.lock", "held-vdevs.keeper"
PATIENCE = 10.0
"""Seconds to wait while another process changes the file."""
PREPARING = "waiting until full vdevs take no new writes"
"""Begin of the reason of a job that waits for the keeper."""


@dataclass(frozen=True, slots=True)
class HeldVdev:
    """A top-level vdev that is to take no new writes."""

    name: str
    key: str = ""
    """Its key in the pool's tree (``model.placed``), its GUID where known; empty if not found."""
    ours: bool = False
    """Whether zconsole has set allocating=off, or was about to."""
    left: str = ""
    """Why it is left alone for the rest of the job; empty if it is not."""


@dataclass(frozen=True, slots=True)
class HeldVdevs:
    """The vdevs that are held for one job."""

    job: str
    pool: str
    vdevs: tuple[HeldVdev, ...]
    idle_since: float | None = None
    """Epoch seconds since when the job has moved nothing; None while it moves files."""

    @property
    def is_decided(self) -> bool:
        """Whether each vdev takes no new writes by now, or is left alone."""
        return all(vdev.ours or vdev.left for vdev in self.vdevs)

    @property
    def ours(self) -> tuple[str, ...]:
        """Names of the vdevs that zconsole keeps from new writes."""
        return tuple(vdev.name for vdev in self.vdevs if vdev.ours)

    def with_vdev(self, before: HeldVdev, after: HeldVdev) -> HeldVdevs:
        """Return the record with one vdev replaced."""
        vdevs = tuple(after if vdev == before else vdev for vdev in self.vdevs)
        return replace(self, vdevs=vdevs)


@dataclass(frozen=True, slots=True)
class _File:
    held: tuple[HeldVdevs, ...]
    version: int = 1


def _wake(state: Path) -> None:
    from zconsole.system import keeper  # lazy: jobs without held vdevs need no event loop

    keeper.wake(state, KEEPER)


class MachineHolds:
    """The held vdevs of a machine, kept by the keeper; every method may take seconds."""

    def __init__(
        self, directory: Path | None = None, wake: Callable[[], object] | None = None
    ) -> None:
        """``directory`` keeps the file (default: the state directory).

        ``wake`` starts the keeper of a simulated machine; with it, records stay in memory.
        """
        place = directory or state_dir(create=False)
        self._wake = wake or partial(_wake, place)
        self._file = LockedRecord(_File(()), None if wake else place / NAME, LOCK, PATIENCE)

    def held(self) -> tuple[HeldVdevs, ...]:
        """Return the records, without a lock. Raises StateError for a damaged file."""
        return self._file.read().held

    def want(self, job: str, pool: str, names: Sequence[str]) -> HeldVdevs:
        """Return a job's record, made if there is none, and start the keeper unless it runs.

        Raises ZconsoleError, OSError.
        """
        with self._file.open() as write:
            held = self.held()
            found = next((each for each in held if each.job == job), None)
            if found is None:
                found = HeldVdevs(job, pool, tuple(map(HeldVdev, names)))
                write(_File((*held, found)))
        self._wake()
        return found

    def resume(self) -> None:
        """Start the keeper for existing records, after a reboot or a crash.

        Raises ZconsoleError, OSError.
        """
        if self.held():
            self._wake()

    def replaced(self, before: HeldVdevs, after: HeldVdevs | None) -> bool:
        """Replace a record by another, or remove it; return False if it had changed meanwhile."""
        with self._file.open() as write:
            held = self.held()
            if before not in held:
                return False
            others = (after if each == before else each for each in held)
            write(_File(tuple(each for each in others if each is not None)))
            return True
