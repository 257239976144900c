"""Checklists on disk, one file each, and who leads them: they survive the session and a reboot.

Whoever holds the lock of a checklist leads it; others read it. What it is judged by is asked of the
machine here, too.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from zconsole.actions.backend import ActionBackend
from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.plan import ActionPlan, Facts, Situation
from zconsole.actions.refresh import situation_of
from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.diagnosis.device_errors.probes import smart_of
from zconsole.errors import ZconsoleError
from zconsole.hardware.device import Device
from zconsole.swap.disk import BACKED_OUT, OPEN, Checklist, MachineView, SwapDisk, device_of
from zconsole.swap.steps import PUT_BACK, WAYS, Answer, SwapStage, comes_before, steps_of
from zconsole.swap.watch import absent, current, missing, noticed
from zconsole.system.async_process import ProcessRunner
from zconsole.system.host import boot_id
from zconsole.system.patient import PATIENCE, made_state_dir
from zconsole.system.record_file import LockedStore
from zconsole.system.records import from_json, parse_json
from zconsole.system.state_dir import StateError, remove, state_dirs
from zconsole.timeline.frame import Frame

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
    if (
        path.name != f"swap-{swap.id}.json"
        or swap.mode not in WAYS
        or swap.at not in steps_of(swap)
    ):
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


AGE = 120.0
"""Seconds for which what a disk said of itself is not asked again."""

MOST_ASKED = 4
"""Disks that hold nothing and are asked for their SMART counts: more are not for one swap."""

LOOKING = 60.0
"""Seconds for one look in all: each question has a deadline, but several may hang in turn."""

Frames = Callable[[], Awaitable[Sequence[Frame]]]
"""The newest frame of every pool."""


class SwapSession:
    """Connects checklists with one machine, or one simulated shelf."""

    def __init__(
        self,
        backend: ActionBackend,
        swaps: SwapBackend,
        frames: Frames,
        patience: float = LOOKING,
    ) -> None:
        """``patience``: seconds that one look may take in all."""
        self._backend = backend
        self._swaps = swaps
        self._frames = frames
        self._patience = patience
        self._smart: dict[tuple[str, str], tuple[float, SmartCounts | None]] = {}
        """By path and serial number: a path may name a bay, with another disk in it by now."""

    async def view(
        self, pool: Callable[[Situation], bool], disk: SwapDisk | None = None
    ) -> MachineView | None:
        """What there is to see now; None while no frame has the pool.

        ``pool`` tells the pool from others; the SMART counts of ``disk``, and of disks that hold
        nothing, are asked for. Raises ZconsoleError where the machine doesn't answer in time.
        """
        frames = await self._frames()
        try:
            async with asyncio.timeout(self._patience):
                return await self._view(frames, pool, disk)
        except TimeoutError:
            what = f"zpool or the machine's disks did not answer within {self._patience:g} s"
            raise ZconsoleError(f"{what}; what is shown may be old. Looking again") from None

    async def _view(
        self,
        frames: Sequence[Frame],
        pool: Callable[[Situation], bool],
        disk: SwapDisk | None,
    ) -> MachineView | None:
        bare: list[tuple[Frame, Situation]] = []
        for frame in frames:
            with suppress(ZconsoleError):
                bare += [] if frame.absent else [(frame, situation_of(frame, Facts()))]
        own = next((pair for pair in bare if pool(pair[1])), None)
        if own is None:
            return None
        frame, mine = own
        facts = await self._backend.ask(mine.pool, mine.suspended)
        rest = (situation for _, situation in bare if situation is not mine)
        others = await asyncio.gather(*(self._other(situation, facts) for situation in rest))
        smart = await self._asked(facts.devices, disk, frame.t)
        mine = replace(mine, facts=facts)
        return MachineView(mine, tuple(others), frame.troubles, smart, boot=self._swaps.boot)

    async def _other(self, situation: Situation, facts: Facts) -> Situation:
        """Another pool, with the same disks; its labels are read only while it is suspended."""
        shared = Facts(version=facts.version, parameters=facts.parameters, devices=facts.devices)
        if situation.suspended:
            shared = await self._backend.ask(situation.pool, suspended=True)
        return replace(situation, facts=shared)

    async def _asked(
        self, devices: Sequence[Device], disk: SwapDisk | None, now: float
    ) -> Mapping[str, SmartCounts]:
        """The counts of the disk to swap and of those that could be new, by path.

        None is older than ``AGE``, nor from before the clock was set back.
        """
        old = device_of(disk, devices) if disk is not None else None
        bare = (device for device in devices if device.contents.zfs_pool is None)
        empty = [device for device in bare if device.kind == "disk" and not device.mounted]
        asked = (*((old,) if old else ()), *(empty if len(empty) <= MOST_ASKED else ()))
        wanted = {(device.path, device.serial): device for device in asked if device.node}
        kept = self._smart
        due = [key for key in wanted if key not in kept or not 0.0 <= now - kept[key][0] < AGE]
        found = await asyncio.gather(*(self._swaps.smart_of(wanted[key].node) for key in due))
        kept.update(zip(due, ((now, counts) for counts in found), strict=True))
        known = ((key[0], kept[key][1]) for key in wanted)
        return {path: counts for path, counts in known if counts is not None}

    async def view_of(self, swap: Checklist) -> MachineView | None:
        """What a checklist is judged by; None while its pool is not imported."""
        return await self.view(partial(is_own, swap), swap.old)

    async def peek(self, swap: Checklist, kept: Iterable[Checklist]) -> tuple[Checklist, SwapStage]:
        """A checklist and its step, seen now but not kept: another process may lead it.

        ``kept``: every checklist there is; disks that other open ones swap may be pulled.
        """
        view = await self.view_of(swap)
        if view is None:
            return swap, absent(swap)
        view = replace(view, leaving=_leaving(swap, kept))
        now = self._backend.clock()
        seen = noticed(swap, view, now)
        return seen, current(seen, view, now)


def is_own(swap: Checklist, situation: Situation) -> bool:
    """Whether this is the pool of a checklist: by GUID, also under another name."""
    if swap.guid is None or not situation.guids:
        return situation.pool.name == swap.pool
    return swap.guid in situation.guids


def _leaving(mine: Checklist, kept: Iterable[Checklist]) -> tuple[SwapDisk, ...]:
    """The disks that other open checklists have come to find or pull: before, they must stay."""
    return tuple(
        swap.old
        for swap in kept
        if swap.state == OPEN and swap.id != mine.id
        if swap.pulled is not None or not comes_before(swap, swap.at, "light")
    )


class Guide:
    """Leads through one checklist, or only shows it where another process leads."""

    def __init__(self, swap: Checklist, store: SwapStore) -> None:
        """``swap`` as it was begun, or as the store has it."""
        self.checklist = swap
        self._store = store
        self.problem = ""
        """Why the checklist is not kept; empty while it is."""
        self.leads = self._ask_to_lead()
        """Whether this process may act; otherwise another console does."""

    def look(self, view: MachineView | None, now: float) -> SwapStage:
        """The current step; what is new is kept. ``view``: None while the pool is not imported."""
        if not self.leads:
            self._follow()
        if view is None:
            return absent(self.checklist)
        if missing(self.checklist, view):
            with suppress(StateError):
                view = replace(view, leaving=_leaving(self.checklist, self._store.read()))
        if self.leads:
            self._keep(noticed(self.checklist, view, now))
        return current(self.checklist, view, now)

    def answer(self, answer: Answer, now: float) -> None:
        """Take an answer of the current stage."""
        self._keep(answer.noted(self.checklist, now))

    def ran(
        self, stage: SwapStage, plan: ActionPlan, events: Sequence[ExecutionEvent], now: float
    ) -> None:
        """Write down what the plan of a stage, or that of its way back, did.

        Each command with its result, and what only that tells.
        """
        swap, light = self.checklist, plan.action == "locate"
        step = PUT_BACK if swap.wrong else stage.step
        if light:  # it may be switched at any step
            step = stage.step if stage.step == "light-off" else "light"
        # Some commands only begin something that takes hours.
        begins = plan.action in ("scrub", "replace") and not plan.supersedes
        for number, event in enumerate(events):
            if event.kind == "begun":
                ends = (e for e in events[number + 1 :] if e.kind in _ENDS)
                result = "started" if begins else "done"
                if (end := next(ends, None)) is None or end.kind == "failed":
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
        """Write down what was done for this checklist together with others."""
        self._keep(self.checklist.noting(now, step, text, command, result))

    def close(self, now: float, undone: tuple[str, ...] = ()) -> None:
        """Close the checklist: backed out, or given up with something ``undone``."""
        swap = self.checklist
        swap = swap.noting(now, swap.at, "given up" if undone else "backed out")
        self._keep(swap.ending(now, BACKED_OUT, undone))

    def _ask_to_lead(self) -> bool:
        try:
            return self._store.leads(self.checklist.id)
        except StateError as error:
            # A state directory that hangs, perhaps on this very pool, must not stop the swap.
            self.problem = str(error)
            return True

    def _follow(self) -> None:
        """What the leading process has written; its lead, once it is gone."""
        try:
            found = self._store.read()
        except StateError as error:
            self.problem = str(error)
            return
        mine = next((swap for swap in found if swap.id == self.checklist.id), None)
        self.checklist = mine or self.checklist
        self.leads = self._ask_to_lead()

    def _keep(self, swap: Checklist) -> None:
        if swap != self.checklist:
            self.checklist = swap
            self.save()

    def save(self) -> None:
        """Write the checklist; why it couldn't be is in ``problem``."""
        try:
            self._store.save(self.checklist)
            self.problem = ""
        except StateError as error:
            self.problem = str(error)


_ENDS = ("begun", "done", "failed", "refused")
"""What follows a command that ended."""
