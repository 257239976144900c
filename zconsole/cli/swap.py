"""``zconsole swap``: opens the console at a guided disk swap, or prints the unfinished ones."""

from __future__ import annotations

import argparse
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from zconsole.actions.backend import live_backend
from zconsole.actions.facts import RoundsOnDemand
from zconsole.actions.plan import Situation
from zconsole.cli import console, event_loop, local
from zconsole.cli.config import denied
from zconsole.cli.output import NO_POOLS, local_zone, say, say_problems
from zconsole.cli.terminal import has_terminal
from zconsole.diagnosis.device_errors.probes import signs_of
from zconsole.errors import ExitCode, NotFoundError, UnavailableError, UsageError
from zconsole.output import json
from zconsole.swap.choice import choose
from zconsole.swap.disk import DONE, OPEN, Checklist, MachineView, device_named, proposed
from zconsole.swap.report import checklist_record, choice_record, explained, markdown
from zconsole.swap.stage import SwapStage
from zconsole.swap.steps import STEPS
from zconsole.swap.store import SwapSession, SwapStore, live_swap
from zconsole.system.async_process import ProcessRunner
from zconsole.system.host import is_root
from zconsole.system.printable import clean
from zconsole.system.state_dir import state_dirs
from zconsole.timeline.devices import DeviceProber

_T = TypeVar("_T")

STAYS_OPEN = "The checklist stays open; zconsole swap continues it."


def run(args: argparse.Namespace) -> int:
    """Open the console at a swap, or print the checklists of open swaps; return the exit code."""
    if args.json or not has_terminal():
        return event_loop.run(_on_this_machine(args, SwapListing.show))
    if reason := denied(args):
        raise UsageError(f"swap changes the pool: {reason}")
    if not is_root():
        raise UnavailableError("swapping a disk changes the pool: run it as root")
    args.host, args.swap_at = None, event_loop.run(_on_this_machine(args, SwapListing.wanted))
    begun = time.time()
    code = console.run(args)
    kept = SwapStore(None, state_dirs()).read()
    wanted = (swap for swap in kept if matches(swap, args))
    mine = (swap for swap in wanted if swap.state == OPEN or (swap.ended or 0) >= begun)
    return code or ended(next(mine, None))


def ended(checklist: Checklist | None) -> ExitCode:
    """Print the report of a swap that has ended; return the exit code for the swap's state."""
    if checklist is None or checklist.state == OPEN:
        say("No swap was started." if checklist is None else STAYS_OPEN)
        return ExitCode.FAILED if checklist is None else ExitCode.INTERRUPTED
    print(markdown(checklist, local_zone()), end="")
    return ExitCode.OK if checklist.state == DONE else ExitCode.FAILED


def matches(checklist: Checklist, args: argparse.Namespace) -> bool:
    """Return whether a checklist is about the pool and the device on the command line."""
    old = checklist.old
    words = {old.name, old.path, old.whole, old.node, old.serial, old.wwn, old.bay, old.key}
    return args.pool in (None, checklist.pool) and args.device in (None, *(words - {""}))


async def _on_this_machine(
    args: argparse.Namespace, ask: Callable[[SwapListing], Awaitable[_T]]
) -> _T:
    runner = ProcessRunner()
    prober = DeviceProber(partial(signs_of, runner))
    feed = local.feed_on_demand(prober=prober)
    rounds = RoundsOnDemand(feed)
    backend = live_backend(read_only=True)
    session = SwapSession(backend, live_swap(), rounds.frames)
    try:
        # Without a directory to write to: showing checklists must not create it, nor lock any.
        return await ask(SwapListing(args, session, SwapStore(None, state_dirs())))
    finally:
        await feed.aclose()


class SwapListing:
    """The checklists and devices that the command line is about."""

    def __init__(self, args: argparse.Namespace, session: SwapSession, store: SwapStore) -> None:
        self._args = args
        self._session = session
        self._kept = store.read()
        say_problems(store)
        self._known = [swap for swap in self._kept if swap.state == OPEN and matches(swap, args)]

    async def wanted(self) -> tuple[str, str]:
        """Return the pool, and the key of the device, whose swap the console should open.

        The key is empty if no device is named and several swaps, or none, are open. Raises
        NotFoundError, UsageError.
        """
        pools = {swap.pool for swap in self._known}
        if len(pools) == 1:
            return self._known[0].pool, self._known[0].old.key if len(self._known) == 1 else ""
        view = await self._view()
        device = self._args.device
        return view.pool.name, device_named(view, device) if device else ""

    async def show(self) -> int:
        """Print the open checklists and their current steps; without any, what a swap would do.

        Asks nothing. Returns the exit code.
        """
        if not self._known and self._args.pool is None:
            await self._session.view(lambda _: False)  # raises UnavailableError without ZFS
            if not self._args.json:
                say("no swap is open; begin one in a terminal: zconsole swap POOL DEVICE")
            return ExitCode.OK
        if not self._known:
            return await self._show_other()
        questions = False
        for known in self._known:
            seen, stage = known, None
            try:
                seen, stage = await self._session.peek(known, self._kept)
                questions = questions or stage.asks
            except UnavailableError as error:  # ZFS can't be asked: print the stored checklist
                say(str(error))
            self._print(seen, stage)
        if self._args.pool is None or not questions:
            return ExitCode.OK
        say(f"this step needs a terminal: zconsole swap {self._args.pool}")
        return ExitCode.USAGE

    async def _show_other(self) -> int:
        """Print the newest ended checklist of the named device, else what a swap would do.

        Returns the exit code.
        """
        device = self._args.device
        last = next((swap for swap in self._kept if device and matches(swap, self._args)), None)
        if last is not None:
            self._print(last, None)
            return ExitCode.OK if last.state == DONE else ExitCode.FAILED
        view = await self._view()
        found = [device_named(view, device)] if device else [t.key for t in proposed(view)]
        if not found:
            name = view.pool.name
            raise UsageError(
                f"no device of {name} has failed; name one: zconsole swap {name} DEVICE"
            )
        for choice in filter(None, (choose(view, key) for key in found)):
            if self._args.json:
                print(json.line(choice_record(choice)))
                continue
            for heading, lines in explained(choice).items():
                print("\n".join(map(clean, (heading, *(f"  {line}" for line in lines)))))
        say("a swap is begun in a terminal: zconsole swap POOL DEVICE")
        return ExitCode.USAGE

    async def _view(self) -> MachineView:
        """Return a view of the named pool, or of the only one. Raises NotFoundError, UsageError."""
        named = self._args.pool

        def _is_it(situation: Situation) -> bool:
            return named is None or situation.pool.name == named

        view = await self._session.view(_is_it)
        if view is None:
            raise NotFoundError(f"no pool {named!r}" if named else NO_POOLS)
        if named is None and view.others:
            pools = ", ".join(situation.pool.name for situation in view.situations)
            raise UsageError(f"name the pool: zconsole swap POOL [DEVICE] ({pools})")
        return view

    def _print(self, checklist: Checklist, stage: SwapStage | None) -> None:
        if self._args.json:
            print(json.line(checklist_record(checklist, stage)))
        elif checklist.state != OPEN:
            print(markdown(checklist, local_zone()), end="")
        else:
            title = STEPS[checklist.at].title.lower()
            line = f"{checklist.id}  {checklist.pool} {checklist.old.words}: {title}"
            print(clean(f"{line}  {stage.title if stage else ''}".rstrip()))
