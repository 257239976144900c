"""One checklist being followed: looked at, answered, its plans' results written down, kept."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import replace

from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.plan import ActionPlan, Situation
from zconsole.swap.checklist import BACKED_OUT, OPEN, PUT_BACK, Checklist
from zconsole.swap.choice import SwapChoice, SwapWay, begin
from zconsole.swap.disk import SwapDisk
from zconsole.swap.progress import absent, current, noticed
from zconsole.swap.stage import SwapStage
from zconsole.swap.store import SwapStore
from zconsole.swap.strays import missing
from zconsole.swap.view import MachineView
from zconsole.system.state_dir import StateError
from zconsole.timeline.eta.estimate import Estimate


class Guide:
    """Leads through one checklist, or only shows it where another process leads."""

    def __init__(self, checklist: Checklist, store: SwapStore) -> None:
        """``checklist`` as it was begun, or as the store has it."""
        self.checklist = checklist
        self._store = store
        self.problem = ""
        """Why the checklist is not kept; empty while it is."""
        self.leads = self._ask_to_lead()
        """Whether this process may act; otherwise another console does."""

    def look(self, v: MachineView | None, now: float) -> SwapStage:
        """The current step; what is new is kept. ``v`` is None while the pool is not imported."""
        if not self.leads:
            self._follow()
        if v is None:
            return absent(self.checklist)
        if missing(self.checklist, v):
            v = replace(v, leaving=self._leaving())
        if self.leads:
            self._keep(noticed(self.checklist, v, now))
        return current(self.checklist, v, now)

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
        c = self.checklist
        c = c.noting(now, c.at, "given up" if undone else "backed out")
        self._keep(c.ending(now, BACKED_OUT, undone))

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
        mine = next((c for c in found if c.id == self.checklist.id), None)
        self.checklist = mine or self.checklist
        self.leads = self._ask_to_lead()

    def _leaving(self) -> tuple[SwapDisk, ...]:
        try:
            return leaving(self.checklist, self._store.read())
        except StateError:
            return ()

    def _keep(self, c: Checklist) -> None:
        if c is self.checklist or c == self.checklist:
            return
        self.checklist = c
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
    v: MachineView,
    store: SwapStore,
    now: float,
    estimate: Estimate | None = None,
) -> Guide:
    """The guide of a swap that was confirmed now; of the one that is open for this disk already.

    ``estimate``: how long its resilver was said to take.
    """
    known = next((c for c in store.read() if is_about(c, choice)), None)
    if known is not None:
        return Guide(known, store)
    c = begin(choice, way, v, secrets.token_hex(4), now)
    if estimate is not None and estimate.eta is not None:
        c = replace(c, predicted=estimate.eta, basis=estimate.reason)
    guide = Guide(c, store)
    guide.save()
    return guide


def leaving(mine: Checklist, kept: Iterable[Checklist]) -> tuple[SwapDisk, ...]:
    """The disks that other open checklists have come to pull."""
    return tuple(c.old for c in kept if c.state == OPEN and c.id != mine.id and may_go(c))


def may_go(c: Checklist) -> bool:
    """Whether a checklist has come to find its disk, to pull it: before that it must stay."""
    return c.pulled is not None or c.steps.index(c.at) >= c.steps.index("light")


def is_about(c: Checklist, choice: SwapChoice) -> bool:
    """Whether an open checklist is about the disk of a choice."""
    same_pool = c.guid == choice.guid if c.guid and choice.guid else c.pool == choice.old.pool
    return c.state == OPEN and same_pool and c.old.key == choice.old.key


def own_pool(c: Checklist, situations: Iterable[Situation]) -> Situation | None:
    """The pool of a checklist: by GUID, also under another name; None while not imported."""
    return next((s for s in situations if is_own(c, s)), None)


def is_own(c: Checklist, s: Situation) -> bool:
    """Whether this is the pool of a checklist."""
    if c.guid is None or not s.guids:
        return s.pool.name == c.pool
    return c.guid in s.guids


def answered(c: Checklist, name: str, now: float) -> Checklist:
    """The checklist after an answer of one of its stages."""
    if name == "pulled":
        how = f"{c.old.words} is out: the operator said so, the machine did not show it"
        return replace(c, pulled=now, unseen=not c.was_gone).noting(now, "pull", how)
    if name == "same":
        return replace(c, unseen=False)
    if name == "meant" and c.wrong:
        gone = c.wrong[0]
        c = c.noting(now, PUT_BACK, f"{gone.words} was pulled on purpose: the operator said so")
        same = tuple(disk for disk in c.wrong if disk.whole == gone.whole)
        rest = tuple(disk for disk in c.wrong if disk not in same)
        return replace(c, wrong=rest, meant=(*c.meant, *same))
    step, said = _SAID.get(name, (name, name))
    return c.noting(now, c.at, f"{said}: the operator said so").passing(step)


_SAID = {
    "no-light": ("light", "the bay is known without its light"),
    "leave-lit": ("light-off", "the light stays as it is"),
    "no-scrub": ("scrub", "no scrub is wanted"),
    "no-wait": ("scrub", "the scrub goes on without being waited for"),
    "elsewhere": ("elsewhere", "the new disk is used where it is"),
}
"""Answers that pass a step, or allow something: by name, which, and what the log says."""


def after_run(
    c: Checklist, stage: SwapStage, plan: ActionPlan, events: tuple[ExecutionEvent, ...], now: float
) -> Checklist:
    """The checklist after a plan ran: each command with its result, and what only that tells."""
    step = _step_of(c, stage, plan)
    for number, event in enumerate(events):
        if event.kind == "begun":
            end = next((e for e in events[number + 1 :] if e.kind in _ENDS), None)
            result = "" if end is None else end.text if end.kind == "failed" else _ended(plan)
            c = c.noting(now, step, plan.title, event.text, result)
        elif event.kind == "refused":
            c = c.noting(now, step, f"{plan.title}: not run: {event.text}")
    return _done(c, stage, plan) if events and events[-1].kind == "done" else c


def _step_of(c: Checklist, stage: SwapStage, plan: ActionPlan) -> str:
    """What the log counts a plan to: a light may be switched at any step."""
    if plan.action == "locate":
        return stage.step if stage.step == "light-off" else "light"
    return PUT_BACK if c.wrong else stage.step


def _ended(plan: ActionPlan) -> str:
    """The result of a command that ended well: some only begin something that takes hours."""
    begins = plan.action in ("scrub", "replace") and not plan.supersedes
    return "started" if begins else "done"


_ENDS = ("begun", "done", "failed", "refused")
"""What follows a command that ended."""


def _done(c: Checklist, stage: SwapStage, plan: ActionPlan) -> Checklist:
    """What no sample shows: a light that is on or off."""
    if plan.action != "locate":
        return c
    if any(step.light is not None and step.light.on for step in plan.steps):
        lit = tuple(step for step in c.passed if step != "light-off")
        return replace(c, lit=True, passed=lit).passing("light")
    if stage.step == "light-off":
        return replace(c, lit=False).passing("light-off")
    return replace(c, lit=False, passed=tuple(step for step in c.passed if step != "light"))
