"""Checklists on disk, one file each, with a lock for the process that leads; they survive a reboot.

The process that holds the lock of a checklist leads it; other processes only read it. The machine
view that a checklist is compared with is collected here, too.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Protocol

from zconsole.actions.backend import ActionBackend
from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.facts import Frames, situation_of, with_failures
from zconsole.actions.plan import ActionPlan, Facts, Situation
from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.diagnosis.device_errors.probes import smart_of
from zconsole.errors import ZconsoleError
from zconsole.hardware.device import Device
from zconsole.swap.disk import BACKED_OUT, OPEN, Checklist, MachineView, SwapDisk, device_of
from zconsole.swap.stage import Answer, SwapStage
from zconsole.swap.steps import PUT_BACK, WAYS, comes_before, steps_of
from zconsole.swap.watch import look_at, missing
from zconsole.system.async_process import ProcessRunner
from zconsole.system.host import boot_id
from zconsole.system.patient import PATIENCE, made_state_dir
from zconsole.system.record_file import LockedStore
from zconsole.system.records import from_json, parse_json
from zconsole.system.state_dir import StateError, remove, state_dirs

FORMAT = 1
MOST_BYTES = 4 * 2**20
KEPT = 50
"""Number of closed checklists kept for their reports, the newest ones."""
_NAME = re.compile(r"swap-([0-9a-f]{8})\.json", re.ASCII)


@dataclass(slots=True)
class SwapStore(LockedStore):
    """The store of checklists in the state directory."""

    memory: dict[str, Checklist] | None = None
    """Keeps checklists in memory instead, until the console ends; for simulated pools."""

    def leads(self, name: str) -> bool:
        """Return whether this process leads a checklist; takes its lock if that is free.

        ``name`` is the checklist's id. Raises StateError if the answer can't be determined.
        """
        if self.memory is not None:
            return True
        if self.directory is None:
            raise StateError("there is no state directory: this swap is not remembered")
        return self.mine(f"swap-{name}.lock")

    def save(self, swap: Checklist) -> bool:
        """Write a checklist; return False if another process leads it.

        Returns once the file survives a power cut. Raises StateError.
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
        """Return every readable checklist, newest first. Raises StateError on a timeout."""
        if self.memory is not None:
            return newest_first(self.memory.values())
        return newest_first(self.read_files(_NAME, _load, MOST_BYTES, PATIENCE))

    def _forget_old(self) -> None:
        """Remove the oldest closed checklists beyond ``KEPT``."""
        closed = [swap for swap in self.read() if swap.state != OPEN]
        for swap in closed[KEPT:]:
            for suffix in ("json", "lock"):
                if self.directory is not None:
                    self.in_time(partial(remove, self.directory / f"swap-{swap.id}.{suffix}"))


def newest_first(found: Iterable[Checklist]) -> tuple[Checklist, ...]:
    """Return checklists in display order, newest first."""
    return tuple(sorted(found, key=lambda swap: -swap.begun))


def dumped(swap: Checklist) -> bytes:
    """Return a checklist as JSON."""
    return json.dumps({"format": FORMAT, "checklist": asdict(swap)}).encode("ascii")


def _load(path: Path, data: bytes) -> Checklist:
    """Return the checklist of a file. Raises ValueError for anything else."""
    document = parse_json(data)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError("the checklist of another version")
    swap = from_json(Checklist, document.get("checklist"), "checklist")
    known = swap.mode in WAYS and swap.at in steps_of(swap)
    if path.name != f"swap-{swap.id}.json" or not known:
        raise ValueError("not the checklist of its name, or one of another version")
    return swap


SmartOf = Callable[[str], Awaitable[SmartCounts | None]]
"""Returns the SMART counts of the disk at a device node; None without an answer in time."""


WHILE = 3600.0
"""Seconds by which the hands skip time while nothing runs."""


class Hands(Protocol):
    """Pulling and inserting disks by program, which only a simulated machine can do."""

    def bays(self) -> Mapping[str, str]:
        """Return the disk in each bay, in words; empty for an empty bay. The bays are in order."""

    def drawer(self) -> Sequence[str]:
        """Return the disks that lie beside the machine, in words."""

    def pull(self, bay: str) -> str:
        """Pull the disk of a bay into the drawer; return what was done, in words.

        Raises ZconsoleError if the bay is empty or does not exist.
        """

    def insert(self, number: int, bay: str) -> str:
        """Put a disk of the drawer, by its number there, into an empty bay; return what was done.

        Raises ZconsoleError if that is not possible.
        """

    def wait(self, pool: str) -> str:
        """Skip to the end of what runs on a pool, else a while ahead; return what was done."""


@dataclass(frozen=True, slots=True)
class SwapBackend:
    """The checklists and disks of one machine, or of a simulated shelf."""

    make_store: Callable[[bool], SwapStore]
    """Opens the store, to lead a checklist (True) or only to read. May block on a disk."""
    smart_of: SmartOf
    boot: str = ""
    """Id of the current boot."""
    hands: Hands | None = None
    """Pulls and inserts disks of a simulated shelf; None for a real machine."""


def live_swap() -> SwapBackend:
    """Return the checklists and disks of this machine."""
    return SwapBackend(_store, partial(smart_of, ProcessRunner()), boot_id() or "")


def _store(leads: bool) -> SwapStore:
    """Open this user's store; without a directory, one that keeps nothing."""
    try:
        directory = made_state_dir() if leads else None
    except StateError:
        directory = None  # saving then raises StateError, which is shown
    return SwapStore(directory, state_dirs())


AGE = 120.0
"""Seconds for which SMART counts of a disk are not read again."""

MOST_ASKED = 4
"""Most unused disks to ask for SMART counts; with more, they can't all be for one swap."""

LOOKING = 60.0
"""Seconds for one look in total: each question has a deadline, but several may hang in turn."""


@dataclass
class SwapSession:
    """Collects the machine view for checklists, from one machine or a simulated shelf."""

    backend: ActionBackend
    swaps: SwapBackend
    frames: Frames
    patience: float = LOOKING
    _smart: dict[tuple[str, str], tuple[float, SmartCounts | None]] = field(default_factory=dict)
    """SMART counts with the time of reading, by path and serial number.

    A path alone may name a bay, which may have another disk by now.
    """

    async def view(
        self, pool: Callable[[Situation], bool], disk: SwapDisk | None = None
    ) -> MachineView | None:
        """Read the state of the machine; None while no frame has the pool.

        ``pool`` tells whether a pool is the one meant. SMART counts are read for ``disk`` and for
        unused disks. Raises ZconsoleError if the machine does not answer in time.
        """
        frames = await self.frames()
        seen = [frame for frame in frames if frame.sample is not None and not frame.absent]
        bare = [situation_of(frame, Facts()) for frame in seen]
        own = next(((frame, at) for frame, at in zip(seen, bare, strict=True) if pool(at)), None)
        if own is None:
            return None
        frame, mine = own
        try:
            async with asyncio.timeout(self.patience):
                facts = with_failures(await self.backend.ask(mine.pool, mine.suspended), frames)
                others = await asyncio.gather(
                    *(self._other(at, facts) for at in bare if at is not mine)
                )
                smart = await self._asked(facts.devices, disk, frame.t)
        except TimeoutError:
            what = f"zpool or the machine's disks did not answer within {self.patience:g} s"
            raise ZconsoleError(f"{what}; what is shown may be old. Looking again") from None
        return MachineView(
            replace(mine, facts=facts),
            tuple(others),
            frame.troubles,
            smart,
            boot=self.swaps.boot,
            enclosures=frame.sample.enclosures if frame.sample is not None else (),
        )

    async def _other(self, situation: Situation, facts: Facts) -> Situation:
        """Read another pool, with the same disks; its labels only while it is suspended."""
        shared = Facts(version=facts.version, parameters=facts.parameters, devices=facts.devices)
        if situation.suspended:
            shared = await self.backend.ask(situation.pool, suspended=True)
        return replace(situation, facts=shared)

    async def _asked(
        self, devices: Sequence[Device], disk: SwapDisk | None, now: float
    ) -> Mapping[str, SmartCounts]:
        """Return SMART counts of the disk to swap and of possible new disks, by path.

        None is older than ``AGE`` seconds, nor from before the clock was set back.
        """
        old = device_of(disk, devices) if disk is not None else None
        bare = (device for device in devices if device.contents.zfs_pool is None)
        empty = [device for device in bare if device.kind == "disk" and not device.mounted]
        asked = (*((old,) if old else ()), *(empty if len(empty) <= MOST_ASKED else ()))
        wanted = {(device.path, device.serial): device for device in asked if device.node}
        kept = self._smart
        due = [key for key in wanted if key not in kept or not 0.0 <= now - kept[key][0] < AGE]
        found = await asyncio.gather(*(self.swaps.smart_of(wanted[key].node) for key in due))
        kept.update(zip(due, ((now, counts) for counts in found), strict=True))
        known = ((key[0], kept[key][1]) for key in wanted)
        return {path: counts for path, counts in known if counts is not None}

    async def view_of(self, swap: Checklist) -> MachineView | None:
        """Read the machine view of a checklist; None while its pool is not imported."""
        return await self.view(partial(is_own, swap), swap.old)

    async def peek(self, swap: Checklist, kept: Iterable[Checklist]) -> tuple[Checklist, SwapStage]:
        """Return a checklist and its step as of now, without saving: another process may lead it.

        ``kept``: every checklist there is; disks that other open ones swap may be pulled.
        """
        view = await self.view_of(swap)
        if view is not None:
            view = replace(view, leaving=_leaving(swap, kept))
        return look_at(swap, view, self.backend.clock())


def is_own(swap: Checklist, situation: Situation) -> bool:
    """Return whether this is the checklist's pool, by GUID, or by name where that is unknown.

    By GUID it is found also under another name.
    """
    if swap.guid is None or not situation.guids:
        return situation.pool.name == swap.pool
    return swap.guid in situation.guids


def _leaving(mine: Checklist, kept: Iterable[Checklist]) -> tuple[SwapDisk, ...]:
    """Return the disks of other open checklists that are due to be pulled, or are out.

    Before their light or pull step, these disks must stay like any other.
    """
    return tuple(
        swap.old
        for swap in kept
        if swap.state == OPEN and swap.id != mine.id
        if swap.pulled is not None or not comes_before(swap, swap.at, "light")
    )


class Guide:
    """Leads through one checklist, or only shows it: another process leads, or this one may not."""

    def __init__(self, swap: Checklist, store: SwapStore, may_lead: bool = True) -> None:
        """``swap``: a checklist just begun, or one read from the store."""
        self.checklist = swap
        """As last saved; if another process leads, with what the newest look found beyond that."""
        self._store = store
        self._may_lead = may_lead
        self.problem = ""
        """Why the checklist could not be saved; empty if it was."""
        self.leads = self._ask_to_lead()
        """Whether this process leads; if not, it may not act."""

    def look(self, view: MachineView | None, now: float) -> SwapStage:
        """Return the current step, and save what is new if this process leads.

        ``view``: None while the pool is not imported.
        """
        if not self.leads:
            self._follow()
        # The other checklists matter only when a disk is out: it may be theirs.
        if view is not None and missing(self.checklist, view):
            with suppress(StateError):
                view = replace(view, leaving=_leaving(self.checklist, self._store.read()))
        seen, stage = look_at(self.checklist, view, now)
        if self.leads:
            self._keep(seen)
        self.checklist = seen
        return stage

    def answer(self, now: float, answer: Answer) -> None:
        """Apply an answer of the current stage."""
        self._keep(answer.given(self.checklist, now))

    def ran(
        self, now: float, stage: SwapStage, plan: ActionPlan, events: Sequence[ExecutionEvent]
    ) -> None:
        """Log what the plan of a stage, or of its way back, did: each command with its result.

        A light that was switched is recorded, too.
        """
        swap, light = self.checklist, plan.action == "locate"
        step = PUT_BACK if swap.wrong else stage.step
        if light:  # a light may be switched during any step
            step = stage.step if stage.step == "light-off" else "light"
        # Some commands only start work that takes hours; stopping a scrub (``supersedes``) does
        # not.
        begins = plan.action in ("scrub", "replace") and not plan.supersedes
        # Output and warnings come between a command and the event that tells that it has ended.
        told = [e for e in events if e.kind in ("begun", "done", "failed", "refused")]
        for event, end in zip_longest(told, told[1:]):
            if event.kind == "begun":
                result = "started" if begins else "done"
                if end is None or end.kind == "failed":
                    result = "" if end is None else end.text
                swap = swap.noting(now, step, plan.title, event.text, result)
            elif event.kind == "refused":
                swap = swap.noting(now, step, f"{plan.title}: not run: {event.text}")
        if light and events and events[-1].kind == "done":
            on = any(each.light is not None and each.light.on for each in plan.steps)
            swap = replace(swap, lit=on)
            if on:
                swap = swap.retaking("light-off").passing("light")
            else:
                swap = swap.passing(step) if step == "light-off" else swap.retaking("light")
        self._keep(swap)

    def note(self, now: float, step: str, text: str, command: str = "", result: str = "") -> None:
        """Log what was done for this checklist together with others."""
        self._keep(self.checklist.noting(now, step, text, command, result))

    def close(self, now: float, undone: tuple[str, ...] = ()) -> None:
        """Close the checklist: backed out, or given up with something ``undone``."""
        swap = self.checklist
        swap = swap.noting(now, swap.at, "given up" if undone else "backed out")
        self._keep(replace(swap, state=BACKED_OUT, ended=now, undone=undone))

    def _ask_to_lead(self) -> bool:
        """Return whether this process leads; True if the state directory does not answer."""
        try:
            return self._may_lead and self._store.leads(self.checklist.id)
        except StateError as error:
            # A state directory that hangs, perhaps on this very pool, must not stop the swap.
            self.problem = str(error)
            return True

    def _follow(self) -> None:
        """Read what the leading process wrote, and take over the lead once that process is gone."""
        try:
            found = self._store.read()
        except StateError as error:
            self.problem = str(error)
            return
        self.problem = ""
        mine = next((swap for swap in found if swap.id == self.checklist.id), None)
        self.checklist = mine or self.checklist
        self.leads = self._ask_to_lead()

    def _keep(self, swap: Checklist) -> None:
        """Save the checklist if it changed."""
        if swap != self.checklist:
            self.checklist = swap
            self.save()

    def save(self) -> None:
        """Save the checklist; a failure is reported in ``problem``."""
        try:
            self._store.save(self.checklist)
            self.problem = ""
        except StateError as error:
            self.problem = str(error)
