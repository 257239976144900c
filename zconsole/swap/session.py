"""Seeing all that a swap is judged by: the pools of a round of frames, and the machine's disks."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from zconsole.actions.backend import ActionBackend
from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.facts import Asker
from zconsole.actions.plan import ActionPlan, Facts, Situation
from zconsole.actions.refresh import situation_of
from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.errors import ZconsoleError
from zconsole.hardware.device import Device
from zconsole.swap.checklist import BACKED_OUT, OPEN, PUT_BACK, Checklist, SwapStage
from zconsole.swap.choice import SwapChoice, SwapWay, begin
from zconsole.swap.disk import MachineView, SwapDisk, device_of
from zconsole.swap.store import SmartOf, SwapStore
from zconsole.swap.watch import absent, current, missing, noticed
from zconsole.system.state_dir import StateError
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import Frame

AGE = 120.0
"""Seconds for which what a disk said of itself is not asked again."""

LOOKING = 60.0
"""Seconds for one look in all: each question has a deadline, but several may hang in turn."""


class Onlooker:
    """Makes a ``MachineView`` of frames; asks the machine for the rest."""

    def __init__(
        self, ask: Asker, smart_of: SmartOf, boot: str = "", patience: float = LOOKING
    ) -> None:
        """``boot`` is the id of this boot; ``patience``: seconds that one look may take in all."""
        self._ask = ask
        self._patience = patience
        self._smart_of = smart_of
        self._boot = boot
        self._smart: dict[tuple[str, str], tuple[float, SmartCounts | None]] = {}
        """By path and serial number: a path may name a bay, with another disk in it by now."""

    async def look(
        self,
        frames: Sequence[Frame],
        pool: Callable[[Situation], bool],
        disk: SwapDisk | None = None,
    ) -> MachineView | None:
        """What there is to see now; None while no frame has the pool.

        ``pool`` tells the pool from others; the SMART counts of ``disk``, and of disks that hold
        nothing, are asked for. Raises ZconsoleError where the machine doesn't answer in time.
        """
        try:
            async with asyncio.timeout(self._patience):
                return await self._look(frames, pool, disk)
        except TimeoutError:
            what = f"zpool or the machine's disks did not answer within {self._patience:g} s"
            raise ZconsoleError(f"{what}; what is shown may be old. Looking again") from None

    async def _look(
        self,
        frames: Sequence[Frame],
        pool: Callable[[Situation], bool],
        disk: SwapDisk | None,
    ) -> MachineView | None:
        bare = [
            (frame, situation) for frame in frames if (situation := _situation(frame)) is not None
        ]
        own = next(((frame, situation) for frame, situation in bare if pool(situation)), None)
        if own is None:
            return None
        frame, mine = own
        facts = await self._ask(mine.pool, mine.suspended)
        rest = [situation for _, situation in bare if situation is not mine]
        others = await asyncio.gather(*(self._other(situation, facts) for situation in rest))
        return MachineView(
            dataclasses.replace(mine, facts=facts),
            tuple(others),
            frame.troubles,
            await self._asked(_of_interest(facts.devices, disk), frame.t),
            boot=self._boot,
        )

    async def _other(self, situation: Situation, facts: Facts) -> Situation:
        """Another pool, with the same disks; its labels are read only while it is suspended."""
        if situation.suspended:
            return dataclasses.replace(
                situation, facts=await self._ask(situation.pool, suspended=True)
            )
        shared = Facts(version=facts.version, parameters=facts.parameters, devices=facts.devices)
        return dataclasses.replace(situation, facts=shared)

    async def _asked(self, devices: Iterable[Device], now: float) -> Mapping[str, SmartCounts]:
        """The counts of these disks by path, not older than ``AGE``."""
        wanted = {(device.path, device.serial): device for device in devices if device.node}
        due = [disk for disk in wanted if not self._is_fresh(disk, now)]
        found = await asyncio.gather(*(self._smart_of(wanted[disk].node) for disk in due))
        self._smart.update(zip(due, ((now, counts) for counts in found), strict=True))
        known = ((disk[0], self._smart[disk][1]) for disk in wanted)
        return {path: counts for path, counts in known if counts is not None}

    def _is_fresh(self, disk: tuple[str, str], now: float) -> bool:
        """Whether what a disk said last still counts; not after the clock was set back."""
        return disk in self._smart and 0.0 <= now - self._smart[disk][0] < AGE


def _situation(frame: Frame) -> Situation | None:
    try:
        return None if frame.absent else situation_of(frame, Facts())
    except ZconsoleError:
        return None


MOST_ASKED = 4
"""Disks that hold nothing and are asked for their SMART counts: more are not for one swap."""


def _of_interest(devices: Sequence[Device], disk: SwapDisk | None) -> tuple[Device, ...]:
    """The disk of the swap, and disks that could be new."""
    old = device_of(disk, devices) if disk is not None else None
    empty = [
        d for d in devices if d.kind == "disk" and d.contents.zfs_pool is None and not d.mounted
    ]
    return (*((old,) if old else ()), *(empty if len(empty) <= MOST_ASKED else ()))


class Guide:
    """Leads through one checklist, or only shows it where another process leads."""

    def __init__(self, swap: Checklist, store: SwapStore) -> None:
        """``checklist`` as it was begun, or as the store has it."""
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
            view = replace(view, leaving=self._leaving())
        if self.leads:
            self._keep(noticed(self.checklist, view, now))
        return current(self.checklist, view, now)

    def answer(self, name: str, now: float) -> None:
        """Take an answer of the current stage, by its name."""
        self._keep(answered(self.checklist, name, now))

    def ran(
        self, stage: SwapStage, plan: ActionPlan, events: Iterable[ExecutionEvent], now: float
    ) -> None:
        """Write down what the plan of a stage, or that of its way back, did."""
        self._keep(after_run(self.checklist, stage, plan, tuple(events), now))

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

    def _leaving(self) -> tuple[SwapDisk, ...]:
        try:
            return leaving(self.checklist, self._store.read())
        except StateError:
            return ()

    def _keep(self, swap: Checklist) -> None:
        if swap is self.checklist or swap == self.checklist:
            return
        self.checklist = swap
        self.save()

    def save(self) -> None:
        """Write the checklist; why it couldn't be is in ``problem``."""
        try:
            self._store.save(self.checklist)
            self.problem = ""
        except StateError as error:
            self.problem = str(error)


def started(
    choice: SwapChoice,
    way: SwapWay,
    view: MachineView,
    store: SwapStore,
    now: float,
    estimate: Estimate | None = None,
) -> Guide:
    """The guide of a swap that was confirmed now; of the one that is open for this disk already.

    ``estimate``: how long its resilver was said to take.
    """
    known = next((swap for swap in store.read() if is_about(swap, choice)), None)
    if known is not None:
        return Guide(known, store)
    swap = begin(choice, way, view, secrets.token_hex(4), now)
    if estimate is not None and estimate.eta is not None:
        swap = replace(swap, predicted=estimate.eta, basis=estimate.reason)
    guide = Guide(swap, store)
    guide.save()
    return guide


def leaving(mine: Checklist, kept: Iterable[Checklist]) -> tuple[SwapDisk, ...]:
    """The disks that other open checklists have come to pull."""
    return tuple(
        swap.old for swap in kept if swap.state == OPEN and swap.id != mine.id and may_go(swap)
    )


def may_go(swap: Checklist) -> bool:
    """Whether a checklist has come to find its disk, to pull it: before that it must stay."""
    return swap.pulled is not None or swap.steps.index(swap.at) >= swap.steps.index("light")


def is_about(swap: Checklist, choice: SwapChoice) -> bool:
    """Whether an open checklist is about the disk of a choice."""
    same_pool = (
        swap.guid == choice.guid if swap.guid and choice.guid else swap.pool == choice.old.pool
    )
    return swap.state == OPEN and same_pool and swap.old.key == choice.old.key


def own_pool(swap: Checklist, situations: Iterable[Situation]) -> Situation | None:
    """The pool of a checklist: by GUID, also under another name; None while not imported."""
    return next((situation for situation in situations if is_own(swap, situation)), None)


def is_own(swap: Checklist, situation: Situation) -> bool:
    """Whether this is the pool of a checklist."""
    if swap.guid is None or not situation.guids:
        return situation.pool.name == swap.pool
    return swap.guid in situation.guids


def answered(swap: Checklist, name: str, now: float) -> Checklist:
    """The checklist after an answer of one of its stages."""
    if name == "pulled":
        how = f"{swap.old.words} is out: the operator said so, the machine did not show it"
        return replace(swap, pulled=now, unseen=not swap.was_gone).noting(now, "pull", how)
    if name == "same":
        return replace(swap, unseen=False)
    if name == "meant" and swap.wrong:
        gone = swap.wrong[0]
        swap = swap.noting(
            now, PUT_BACK, f"{gone.words} was pulled on purpose: the operator said so"
        )
        same = tuple(disk for disk in swap.wrong if disk.whole == gone.whole)
        rest = tuple(disk for disk in swap.wrong if disk not in same)
        return replace(swap, wrong=rest, meant=(*swap.meant, *same))
    step, said = _SAID.get(name, (name, name))
    return swap.noting(now, swap.at, f"{said}: the operator said so").passing(step)


_SAID = {
    "no-light": ("light", "the bay is known without its light"),
    "leave-lit": ("light-off", "the light stays as it is"),
    "no-scrub": ("scrub", "no scrub is wanted"),
    "no-wait": ("scrub", "the scrub goes on without being waited for"),
    "elsewhere": ("elsewhere", "the new disk is used where it is"),
}
"""Answers that pass a step, or allow something: by name, which, and what the log says."""


def after_run(
    swap: Checklist,
    stage: SwapStage,
    plan: ActionPlan,
    events: tuple[ExecutionEvent, ...],
    now: float,
) -> Checklist:
    """The checklist after a plan ran: each command with its result, and what only that tells."""
    step = _step_of(swap, stage, plan)
    for number, event in enumerate(events):
        if event.kind == "begun":
            end = next((e for e in events[number + 1 :] if e.kind in _ENDS), None)
            result = "" if end is None else end.text if end.kind == "failed" else _ended(plan)
            swap = swap.noting(now, step, plan.title, event.text, result)
        elif event.kind == "refused":
            swap = swap.noting(now, step, f"{plan.title}: not run: {event.text}")
    return _done(swap, stage, plan) if events and events[-1].kind == "done" else swap


def _step_of(swap: Checklist, stage: SwapStage, plan: ActionPlan) -> str:
    """What the log counts a plan to: a light may be switched at any step."""
    if plan.action == "locate":
        return stage.step if stage.step == "light-off" else "light"
    return PUT_BACK if swap.wrong else stage.step


def _ended(plan: ActionPlan) -> str:
    """The result of a command that ended well: some only begin something that takes hours."""
    begins = plan.action in ("scrub", "replace") and not plan.supersedes
    return "started" if begins else "done"


_ENDS = ("begun", "done", "failed", "refused")
"""What follows a command that ended."""


def _done(swap: Checklist, stage: SwapStage, plan: ActionPlan) -> Checklist:
    """What no sample shows: a light that is on or off."""
    if plan.action != "locate":
        return swap
    if any(step.light is not None and step.light.on for step in plan.steps):
        lit = tuple(step for step in swap.passed if step != "light-off")
        return replace(swap, lit=True, passed=lit).passing("light")
    if stage.step == "light-off":
        return replace(swap, lit=False).passing("light-off")
    return replace(swap, lit=False, passed=tuple(step for step in swap.passed if step != "light"))


Frames = Callable[[], Awaitable[Sequence[Frame]]]
"""The newest frame of every pool."""


class SwapSession:
    """Connects checklists with one machine, or one simulated shelf."""

    def __init__(self, backend: ActionBackend, onlooker: Onlooker, frames: Frames) -> None:
        self._backend = backend
        self._onlooker = onlooker
        self._frames = frames

    async def view(
        self, pool: Callable[[Situation], bool], disk: SwapDisk | None = None
    ) -> MachineView | None:
        """See ``Onlooker.look``."""
        return await self._onlooker.look(await self._frames(), pool, disk)

    async def view_of(self, swap: Checklist) -> MachineView | None:
        """What a checklist is judged by; None while its pool is not imported."""
        return await self.view(partial(is_own, swap), swap.old)

    def begin(
        self,
        choice: SwapChoice,
        way: SwapWay,
        view: MachineView,
        store: SwapStore,
        estimate: Estimate | None = None,
    ) -> Guide:
        """The guide of a swap that was confirmed; see ``guide.started``."""
        return started(choice, way, view, store, self._backend.clock(), estimate)

    async def peek(self, swap: Checklist, kept: Iterable[Checklist]) -> tuple[Checklist, SwapStage]:
        """A checklist and its step, seen now but not kept: another process may lead it.

        ``kept``: every checklist there is; disks that other open ones swap may be pulled.
        """
        view = await self.view_of(swap)
        if view is None:
            return swap, absent(swap)
        view = replace(view, leaving=leaving(swap, kept))
        now = self._backend.clock()
        seen = noticed(swap, view, now)
        return seen, current(seen, view, now)
