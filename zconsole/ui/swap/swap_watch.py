"""The checklists of this machine: looked at now and then, shown in the frames.

Does not import textual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from zconsole.actions.target import find
from zconsole.errors import ZconsoleError
from zconsole.keyed_text import KeyedText
from zconsole.pool.model import Activity
from zconsole.swap.disk import BACKED_OUT, DONE, OPEN, Checklist, replacing
from zconsole.swap.steps import STEPS
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.state_dir import StateError
from zconsole.timeline.frame import ActivityView, Frame

if TYPE_CHECKING:
    from zconsole.actions.backend import ActionBackend
    from zconsole.swap.steps import SwapStage
    from zconsole.swap.store import SwapBackend, SwapSession, SwapStore

MOST_CLOSED = 3
"""Closed checklists that are looked at for what they left undone, the newest: each look costs."""
KIND = "disk swap"
"""What the line of a checklist is called."""
NOT_UNDONE = "not undone:"
"""What a line says before what is not as it was."""


@dataclass(slots=True)
class SwapWatch:
    """What is known of checklists; ``make_backend`` is None where no disk can be swapped."""

    make_backend: Callable[[], SwapBackend] | None
    machine: ActionBackend = field(repr=False)
    frames: Callable[[], Sequence[Frame]] = field(repr=False)
    """The newest frame of every pool."""
    stages: dict[str, SwapStage] = field(default_factory=dict)
    """The current step of each open one, by its id, as far as it could be seen."""
    _session: SwapSession | None = field(default=None, repr=False)
    _kept: tuple[Checklist, ...] = ()
    """Every one, as of the newest look."""
    _backend: SwapBackend | None = None
    _reader: SwapStore | None = field(default=None, repr=False)
    _left: tuple[tuple[Checklist, str], ...] = ()
    """What closed checklists left undone, each as a sentence with what to run."""
    _looked: bool = False
    _unfiled: dict[str, Checklist] = field(default_factory=dict)
    """Those that came to their end here and were left at the last step, by id."""

    @property
    def open(self) -> tuple[Checklist, ...]:
        """The open ones, the newest first."""
        return tuple(swap for swap in self._kept if swap.state == OPEN)

    @property
    def backend(self) -> SwapBackend:
        """What leads through a swap. Raises ZconsoleError where nothing does."""
        if self.make_backend is None:
            raise ZconsoleError("disks of this pool can't be swapped from here")
        if self._backend is None:
            self._backend = self.make_backend()
        return self._backend

    @property
    def session(self) -> SwapSession:
        """What looks at pools and disks; one, as it remembers what disks said of themselves."""
        from zconsole.swap.store import SwapSession  # lazy: wanted when there is a checklist

        async def _frames() -> Sequence[Frame]:
            return self.frames()

        if self._session is None:
            self._session = SwapSession(self.machine, self.backend, _frames)
        return self._session

    @property
    def may_change(self) -> bool:
        """Whether another look can find anything new though no checklist was changed."""
        return bool(self.open or self._left)

    async def look(self) -> str:
        """Look at the checklists again; what to announce of those found at the start."""
        if self.make_backend is None:
            return ""
        try:
            self._kept = await in_daemon_thread(self._read)
        except StateError:  # whoever opens one is told
            return ""
        await self._look_at_closed()
        names = {swap.id for swap in self.open}
        self.stages = {name: stage for name, stage in self.stages.items() if name in names}
        for swap in self.open:
            try:
                seen, stage = await self.session.peek(swap, self._kept)
                # Who only looks doesn't end it: until somebody leads it to its end, it is open.
                self.saw(seen if seen.state == OPEN else swap, stage)
            except ZconsoleError:  # it stays as it is kept
                self.stages.pop(swap.id, None)
        first, self._looked = not self._looked, True
        words = ", ".join(swap.old.words for swap in self.open)
        if not (first and words):
            return ""
        act = KeyedText("zconsole swap", "{keys}", "swap")
        return f"Disk swap unfinished: {words}. " + act + " continues it."

    async def _look_at_closed(self) -> None:
        """What the newest closed checklists left undone, as far as it is so still."""
        begun = {(swap.pool, swap.old.key) for swap in self.open}
        closed = [swap for swap in self._kept if swap.state != OPEN and (swap.undone or swap.lit)]
        self._left = ()
        for swap in closed[:MOST_CLOSED]:
            if (swap.pool, swap.old.key) not in begun:
                with suppress(ZconsoleError):
                    _, stage = await self.session.peek(swap, self._kept)
                    self._left += tuple((swap, text) for text in stage.reminders)

    def saw(self, swap: Checklist, stage: SwapStage) -> None:
        """Take in a checklist and its step as somebody has just seen them."""
        known = {each.id: each for each in self._kept}
        self._kept = tuple((known | {swap.id: swap}).values())
        self.stages[swap.id] = stage
        others = tuple(left for left in self._left if left[0].id != swap.id)
        mine = () if swap.state == OPEN else stage.reminders
        self._left = (*others, *((swap, text) for text in mine))

    def _read(self) -> tuple[Checklist, ...]:
        if self._reader is None:
            self._reader = self.backend.make_store(False)
        return self._reader.read()

    def left(self, swap: Checklist, filed: bool) -> None:
        """A checklist was left; ``filed``: its report is saved, or nobody wants it."""
        self._unfiled.pop(swap.id, None)
        if swap.state == DONE and not filed:
            self._unfiled[swap.id] = swap

    def unfiled(self, frame: Frame) -> tuple[Checklist, ...]:
        """The checklists of a pool of which only the report is left to file."""
        return tuple(filter(partial(_is_of, frame), self._unfiled.values()))

    def of(self, frame: Frame) -> tuple[Checklist, ...]:
        """The open checklists of a pool, those with an alarm first."""
        mine = filter(partial(_is_of, frame), self.open)
        return tuple(sorted(mine, key=lambda swap: self.alarm(swap) == ""))

    def alarm(self, swap: Checklist) -> str:
        """What must be put right before anything else; empty where nothing is wrong."""
        stage = self.stages.get(swap.id)
        return stage.title if stage is not None and stage.alarm else ""

    def shown(self, frame: Frame) -> tuple[ActivityView, ...]:
        """A line for each open checklist of a pool, and for all that is left undone."""
        opened = self.of(frame)
        lines = [activity(swap, self.stages.get(swap.id), frame) for swap in opened]
        stages = (self.stages[swap.id] for swap in opened if swap.id in self.stages)
        left = [(NOT_UNDONE, text) for stage in stages for text in stage.reminders]
        for swap, text in self._left:
            said = "given up; left:" if swap.state == BACKED_OUT else NOT_UNDONE
            left += [(said, text)] if _is_of(frame, swap) else []
        lines += [activity(swap, None) for swap in self.unfiled(frame)]
        notes = dict.fromkeys(left)
        lines += [ActivityView(Activity(KIND, said, note=text)) for said, text in notes]
        return tuple(lines)

    def pulled(self, pool: str) -> dict[str, float]:
        """The disks of a pool that were pulled by mistake, and when each was back."""
        return {r.key: r.t for swap in self._kept for r in swap.returned if r.pool == pool}


def _is_of(frame: Frame, swap: Checklist) -> bool:
    return swap.guid == frame.guid if swap.guid and frame.guid else swap.pool == frame.pool


def activity(swap: Checklist, stage: SwapStage | None, frame: Frame | None = None) -> ActivityView:
    """An open checklist as a line beside the scans; ``stage``: its step, where it is known.

    ``frame``: the newest one, which shows that a replace has begun before the machine is looked at.
    """
    if stage is not None and stage.alarm:
        note = (stage.brief or stage.title) + KeyedText("", "  ({keys})", "swap")
    else:
        step = stage.step if stage is not None else swap.at
        if step == "replace" and frame is not None:
            begun = replacing(find(frame.seen, swap.old.key)) is not None
            step = "resilver" if begun else step
        continues = KeyedText("", "  ({keys} continues)", "swap")
        note = f"{swap.old.spot}: {STEPS[step].title}" + continues
    return ActivityView(Activity(KIND, "unfinished:", note=note))
