"""The checklists of this machine, polled from time to time and shown in the frames.

Does not import textual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf

from zconsole.actions.backend import ActionBackend
from zconsole.actions.target import find
from zconsole.errors import ZconsoleError
from zconsole.keyed_text import KeyedText
from zconsole.pool.model import Activity
from zconsole.swap.disk import BACKED_OUT, DONE, OPEN, Checklist, replacing
from zconsole.swap.stage import SwapStage
from zconsole.swap.steps import STEPS
from zconsole.swap.store import SwapBackend, SwapSession, SwapStore
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.state_dir import StateError
from zconsole.timeline.frame import SWAP, ActivityView, Frame

MOST_CLOSED = 3
"""Number of closed checklists checked for what they left undone, newest first: each check costs."""
NOT_UNDONE = "not undone:"
"""Label of an activity line about something left undone."""


@dataclass(slots=True)
class SwapWatch:
    """Watches the checklists of this machine."""

    machine_swaps: SwapBackend | None
    """None where disks can't be swapped."""
    machine: ActionBackend = field(repr=False)
    frames: Callable[[], Sequence[Frame]] = field(repr=False)
    """Returns the newest frame of every pool."""
    stages: dict[str, SwapStage] = field(default_factory=dict)
    """The current step of each open checklist by id, as far as it could be read."""
    _session: SwapSession | None = field(default=None, repr=False)
    _kept: tuple[Checklist, ...] = ()
    """Every checklist, as of the newest look."""
    _reader: SwapStore | None = field(default=None, repr=False)
    _left: tuple[tuple[Checklist, str], ...] = ()
    """What closed checklists left undone, each with a sentence that says what to run."""
    _looked: bool = False
    _unfiled: dict[str, Checklist] = field(default_factory=dict)
    """Checklists finished in this console whose report was not saved, by id."""

    @property
    def open(self) -> tuple[Checklist, ...]:
        """The open checklists, newest first."""
        return tuple(swap for swap in self._kept if swap.state == OPEN)

    @property
    def backend(self) -> SwapBackend:
        """The backend of swaps. Raises ZconsoleError where disks can't be swapped."""
        if self.machine_swaps is None:
            raise ZconsoleError("disks of this pool can't be swapped from here")
        return self.machine_swaps

    @property
    def session(self) -> SwapSession:
        """The session that reads pools and disks; a single one, as it caches SMART counts."""

        async def _frames() -> Sequence[Frame]:
            return self.frames()

        if self._session is None:
            self._session = SwapSession(self.machine, self.backend, _frames)
        return self._session

    @property
    def may_change(self) -> bool:
        """Whether another look can find changes though no checklist was changed."""
        return bool(self.open or self._left)

    async def look(self) -> str:
        """Read the checklists again; return the announcement of open ones at the first look."""
        if self.machine_swaps is None:
            return ""
        try:
            self._kept = await in_daemon_thread(self._read)
        except StateError:  # opening a checklist shows this error
            return ""
        await self._look_at_closed()
        names = {swap.id for swap in self.open}
        self.stages = {name: stage for name, stage in self.stages.items() if name in names}
        for swap in self.open:
            try:
                seen, stage = await self.session.peek(swap, self._kept)
                # A watching console must not close it: it stays open until somebody leads it to its
                # end.
                self.saw(seen if seen.state == OPEN else swap, stage)
            except ZconsoleError:  # keep the saved state
                self.stages.pop(swap.id, None)
        first, self._looked = not self._looked, True
        words = ", ".join(swap.old.words for swap in self.open)
        if not (first and words):
            return ""
        act = KeyedText("zconsole swap", "{keys}", "swap")
        return f"Disk swap unfinished: {words}. " + act + " continues it."

    async def _look_at_closed(self) -> None:
        """Update what the newest closed checklists left undone, as far as it still is."""
        begun = {(swap.pool, swap.old.key) for swap in self.open}
        closed = [swap for swap in self._kept if swap.state != OPEN and (swap.undone or swap.lit)]
        self._left = ()
        for swap in closed[:MOST_CLOSED]:
            # A new checklist for the same device deals with what the old one left.
            if (swap.pool, swap.old.key) not in begun:
                with suppress(ZconsoleError):
                    _, stage = await self.session.peek(swap, self._kept)
                    self._left += tuple((swap, text) for text in stage.reminders)

    def saw(self, swap: Checklist, stage: SwapStage) -> None:
        """Take over a checklist and its step that were just read."""
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
        """Note that a checklist's screen was left.

        ``filed``: its report is saved, or not wanted.
        """
        self._unfiled.pop(swap.id, None)
        if swap.state == DONE and not filed:
            self._unfiled[swap.id] = swap

    def unfiled(self, frame: Frame) -> tuple[Checklist, ...]:
        """Return the pool's finished checklists whose report is not saved."""
        return tuple(filter(partial(_is_of, frame), self._unfiled.values()))

    def of(self, frame: Frame) -> tuple[Checklist, ...]:
        """Return the open checklists of a pool, those with an alarm first."""
        mine = filter(partial(_is_of, frame), self.open)
        return tuple(sorted(mine, key=lambda swap: self.alarm(swap) == ""))

    def alarm(self, swap: Checklist) -> str:
        """Return the alarm of a checklist; empty if nothing is wrong."""
        stage = self.stages.get(swap.id)
        return stage.title if stage is not None and stage.alarm else ""

    def shown(self, frame: Frame) -> tuple[ActivityView, ...]:
        """Return a pool's activity lines: one per open checklist, and one per thing left undone."""
        opened = self.of(frame)
        lines = [activity(swap, self.stages.get(swap.id), frame) for swap in opened]
        stages = (self.stages[swap.id] for swap in opened if swap.id in self.stages)
        left = [(NOT_UNDONE, text) for stage in stages for text in stage.reminders]
        for swap, text in self._left:
            said = "given up; left:" if swap.state == BACKED_OUT else NOT_UNDONE
            left += [(said, text)] if _is_of(frame, swap) else []
        lines += [activity(swap, None) for swap in self.unfiled(frame)]
        if self._reader is not None and (files := self._reader.problems):
            names = ", ".join(path.name for path in files)
            # Its pool is not known, so it is named for each.
            left.append(("unreadable:", f"{names}; zconsole swap --json says why"))
        notes = dict.fromkeys(left)
        lines += [ActivityView(Activity(SWAP, said, note=text)) for said, text in notes]
        return tuple(lines)

    def pulled(self, pool: str) -> dict[str, float]:
        """Return the pool's disks that were pulled by mistake: leaf key to the time of return.

        The time is infinite as long as one is not complete again.
        """
        back = {r.key: r.t for swap in self._kept for r in swap.returned if r.pool == pool}
        return back | {d.key: inf for swap in self.open for d in swap.wrong if d.pool == pool}


def _is_of(frame: Frame, swap: Checklist) -> bool:
    return swap.guid == frame.guid if swap.guid and frame.guid else swap.pool == frame.pool


def activity(swap: Checklist, stage: SwapStage | None, frame: Frame | None = None) -> ActivityView:
    """Return an open checklist as an activity line beside the scans; ``stage``: its step if known.

    ``frame``: the newest frame, which may show a begun replace before the machine was read.
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
    return ActivityView(Activity(SWAP, "unfinished:", note=note))
