"""``zconsole swap``: the guided disk swap as a dialogue of lines, and its open checklists."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path

from zconsole.actions.backend import live_backend
from zconsole.actions.plan import Situation
from zconsole.actions.refresh import PATIENCE, is_answer
from zconsole.actions.target import Target
from zconsole.cli import event_loop, local
from zconsole.cli.configuration import denied
from zconsole.cli.output import local_zone, say
from zconsole.cli.swap_dialogue import Dialogue, DialogueLines, TerminalLines
from zconsole.diagnosis.device_errors.probes import signs_of, smart_of
from zconsole.errors import ExitCode, NotFoundError, UnavailableError, UsageError, ZconsoleError
from zconsole.output import json
from zconsole.swap.cause import cable_advice
from zconsole.swap.checklist import DONE, OPEN, TITLES, Checklist
from zconsole.swap.choice import SwapChoice, choose
from zconsole.swap.explain import WAYS_HEADING, explained, time_words, way_text
from zconsole.swap.guide import Guide
from zconsole.swap.names import device_named, proposed
from zconsole.swap.onlooker import Onlooker
from zconsole.swap.record import asks, checklist_record, choice_record
from zconsole.swap.report import markdown
from zconsole.swap.session import SwapSession
from zconsole.swap.several import estimated, orders, predicted
from zconsole.swap.stage import SwapStage
from zconsole.swap.store import FileSwapStore, SwapStore
from zconsole.swap.view import MachineView
from zconsole.system.async_process import ProcessRunner
from zconsole.system.host import boot_id
from zconsole.system.patient import in_time
from zconsole.system.printable import clean
from zconsole.system.state_dir import StateError, state_dir, state_dirs
from zconsole.timeline.devices import DeviceProber
from zconsole.timeline.feed import Feed, SessionFeed
from zconsole.timeline.frame import Frame
from zconsole.zfs.sources.live import LiveSource

LEFT = "The checklist stays open; zconsole swap continues it."


def run(args: argparse.Namespace) -> int:
    """Lead through a swap, or show the open ones; returns the exit code."""
    terminal = sys.stdin.isatty() and sys.stderr.isatty() and not args.json
    return event_loop.run(_on_this_machine(args, TerminalLines() if terminal else None))


async def _on_this_machine(args: argparse.Namespace, lines: DialogueLines | None) -> int:
    runner = ProcessRunner()
    prober = DeviceProber(partial(signs_of, runner))
    feed = SessionFeed(LiveSource(()), local.session(keep=False), 0.0, None, prober)
    rounds = RoundsOnDemand(feed)
    backend = live_backend(read_only=args.read_only)
    look = Onlooker(backend.ask, partial(smart_of, runner), boot_id() or "")
    session = SwapSession(backend, look, rounds.frames, rounds.fresh)
    # Who only looks makes no directory, and takes no lead.
    store = FileSwapStore(None if lines is None else _directory(), state_dirs())
    try:
        return await SwapCommand(args, session, store, lines).run()
    finally:
        store.close()
        await feed.aclose()


def _directory() -> Path | None:
    """Where checklists are written; None where this user has no directory for them."""
    try:
        return in_time(partial(state_dir, create=True))
    except StateError as error:
        say(f"checklists are not kept: {error}")
        return None


class RoundsOnDemand:
    """The frames of a feed, sampled whenever they are asked for."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    async def frames(self) -> Sequence[Frame]:
        """A round taken now. Raises UnavailableError without ZFS."""
        update = await self._feed.sample()
        return update.frames if update is not None else ()

    async def fresh(self, pool: str, since: float) -> Frame:
        """A frame of the pool sampled after ``since``, or the newest there is after a while.

        Raises UnavailableError when the pool is not imported.
        """
        frame: Frame | None = None
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        while loop.time() < until:
            found = await self.frames()
            frame = next((f for f in found if f.pool == pool and not f.absent), None)
            if frame is None:
                break
            if is_answer(frame.looked, frame.problem, frame.suspended, since):
                break
            await asyncio.sleep(0.2)
        if frame is None:
            raise UnavailableError(f"{pool} is no longer imported")
        return frame


class SwapCommand:
    """One run of the command; ``lines`` is None without a terminal, or with ``--json``."""

    def __init__(
        self,
        args: argparse.Namespace,
        session: SwapSession,
        store: SwapStore,
        lines: DialogueLines | None,
    ) -> None:
        self._pool: str | None = args.pool
        self._device: str | None = args.device
        self._json: bool = args.json
        self._denied = denied(args) or session.denied
        self._session = session
        self._store = store
        self._lines = lines

    async def run(self) -> int:
        """Show, or lead; returns the exit code. Raises ZconsoleError."""
        if self._lines is None:
            return await self._show()
        if self._denied == "not root":
            raise UnavailableError("swapping a disk changes the pool: run it as root")
        if self._denied:
            raise UsageError(f"swap changes the pool: {self._denied}")
        dialogue = Dialogue(self._session, self._lines)
        guide: Guide | None = None
        try:
            guide = await self._guide(dialogue, self._lines)
            if guide is None:
                self._lines.say("No swap was started.")
                return ExitCode.FAILED
            code = await dialogue.follow(guide)
        except (EOFError, asyncio.CancelledError) as end:
            self._lines.say(LEFT if guide is not None else "No swap was started.")
            if isinstance(end, asyncio.CancelledError):
                raise
            return ExitCode.INTERRUPTED
        print(markdown(guide.checklist, local_zone()), end="")
        return code

    async def _guide(self, dialogue: Dialogue, lines: DialogueLines) -> Guide | None:
        """The open checklist that is meant, else a new one; None when nothing was chosen."""
        known = [c for c in self._store.read() if c.state == OPEN and self._is_meant(c)]
        if known:
            chosen = 0 if len(known) == 1 else await dialogue.pick("Which?", [*map(_line, known)])
            return None if chosen is None else Guide(known[chosen], self._store)
        v = await self._view()
        key = await self._key(v, dialogue, lines)
        choice = None if key is None else choose(v, key)
        return None if choice is None else await self._begin(choice, v, dialogue, lines)

    async def _begin(
        self, choice: SwapChoice, v: MachineView, dialogue: Dialogue, lines: DialogueLines
    ) -> Guide | None:
        """Explain, let a way be chosen, and begin. Raises ZconsoleError where none is possible."""
        ways = [way for way in choice.ways if not way.refused]
        listed = {WAYS_HEADING} if ways else set()
        for text in _explanation(choice, listed):
            lines.say(text)
        if not ways:
            raise ZconsoleError(f"no guided swap: {choice.refused}")
        key, guid = choice.old.key, v.situation.pool.guid
        estimate = estimated(v, [key], await local.past(guid) if guid else ()).get(key)
        texts = [f"{way_text(way)}. {time_words(way, estimate)}" for way in ways]
        number = await dialogue.pick("Which way?", texts)
        if number is None:
            return None
        return self._session.begin(choice, ways[number], v, self._store, estimate)

    async def _view(self) -> MachineView:
        """The pool named, or the only one. Raises NotFoundError, UsageError."""
        names: list[str] = []
        named = self._pool

        def _is_it(s: Situation) -> bool:
            names.append(s.pool.name)
            return named is None or s.pool.name == named

        v = await self._session.view(_is_it)
        if v is None:
            raise NotFoundError(f"no pool {named!r}" if named else "no pools are imported")
        if named is None and v.others:
            pools = ", ".join(s.pool.name for s in v.situations)
            raise UsageError(f"name the pool: zconsole swap POOL [DEVICE] ({pools})")
        return v

    async def _key(self, v: MachineView, dialogue: Dialogue, lines: DialogueLines) -> str | None:
        """The device named, or one of those that failed. Raises UsageError without either."""
        if self._device is not None:
            return device_named(v, self._device)
        found = proposed(v)
        if not found:
            raise UsageError(_name_it(v))
        if len(found) == 1:
            return found[0].key
        keys = [target.key for target in found]
        guid = v.situation.pool.guid
        reports = await local.past(guid) if guid else ()
        for order in orders(v, keys, predicted(v, keys, reports)):
            for text in order.text:
                lines.say(text)
            lines.say(f"not now: {order.refused}" if order.refused else "")
        name = clean(v.situation.pool.name)
        lines.say(f"All at once: only the console does that, by C: zconsole console {name}")
        number = await dialogue.pick("Which device first?", [_option(v, t) for t in found])
        return None if number is None else found[number].key

    async def _show(self) -> int:
        """The open checklists with their steps, or what a swap would be; asks nothing."""
        kept = self._store.read()
        known = [c for c in kept if c.state == OPEN and self._is_meant(c)]
        if not known and self._pool is None:
            await self._session.view(lambda _: False)  # without ZFS it says so
            if not self._json:
                say("no swap is open; begin one in a terminal: zconsole swap POOL DEVICE")
            return ExitCode.OK
        if not known:
            return await self._show_other(kept)
        stages = [await self._peek(c, kept) for c in known]
        for c, stage in stages:
            self._print(c, stage)
        if self._pool is None or not any(stage and asks(stage) for _, stage in stages):
            return ExitCode.OK
        say(f"this step needs a terminal: zconsole swap {self._pool}")
        return ExitCode.USAGE

    async def _show_other(self, kept: Sequence[Checklist]) -> int:
        """The newest checklist that ended, where a device was named; else what a swap would be."""
        ended = next((c for c in kept if self._device and self._is_meant(c)), None)
        if ended is not None:
            self._print(ended, None)
            return ExitCode.OK if ended.state == DONE else ExitCode.FAILED
        v = await self._view()
        found = [device_named(v, self._device)] if self._device else [t.key for t in proposed(v)]
        if not found:
            raise UsageError(_name_it(v))
        for choice in filter(None, (choose(v, key) for key in found)):
            if self._json:
                print(json.line(choice_record(choice)))
            else:
                print("\n".join(map(clean, _explanation(choice))))
        say("a swap is begun in a terminal: zconsole swap POOL DEVICE")
        return ExitCode.USAGE

    async def _peek(
        self, c: Checklist, kept: Sequence[Checklist]
    ) -> tuple[Checklist, SwapStage | None]:
        """See SwapSession.peek; as it was kept where ZFS can't be asked."""
        try:
            return await self._session.peek(c, kept)
        except UnavailableError as error:
            say(str(error))
            return c, None

    def _print(self, c: Checklist, stage: SwapStage | None) -> None:
        if self._json:
            print(json.line(checklist_record(c, stage)))
        elif c.state != OPEN:
            print(markdown(c, local_zone()), end="")
        else:
            print(clean(f"{c.id}  {_line(c)}  {stage.title if stage else ''}".rstrip()))

    def _is_meant(self, c: Checklist) -> bool:
        """Whether a checklist is of the pool and the device on the command line."""
        old = c.old
        words = {old.name, old.path, old.whole, old.node, old.serial, old.wwn, old.bay, old.key}
        return self._pool in (None, c.pool) and self._device in (None, *(words - {""}))


def _explanation(choice: SwapChoice, without: Collection[str] = ()) -> Iterator[str]:
    """What to know before a swap begins, but for parts of these headings."""
    for part in explained(choice):
        if part.heading not in without:
            yield part.heading
            yield from (f"  {line}" for line in part.lines)


def _option(v: MachineView, target: Target) -> str:
    """A device that may be swapped; where its cable is the likely cause, what to do first."""
    advice = cable_advice(v, target)
    return f"{target.name} ({advice})" if advice else target.name


def _line(c: Checklist) -> str:
    return f"{c.pool} {c.old.words}: {TITLES[c.at].lower()}"


def _name_it(v: MachineView) -> str:
    name = v.situation.pool.name
    return f"no device of {name} has failed; name one: zconsole swap {name} DEVICE"
