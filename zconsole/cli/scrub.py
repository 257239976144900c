"""``zconsole scrub``: sets the hours of the day to which a pool's scrubs are limited."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from datetime import datetime

from zconsole.actions.backend import ActionBackend, live_backend
from zconsole.actions.facts import Refresher, RoundsOnDemand, situation_of
from zconsole.actions.plan import Facts
from zconsole.actions.scrub_window import hours_words, plan_window, plan_window_off, read_hours
from zconsole.cli import event_loop, local
from zconsole.cli.config import refuse_denied
from zconsole.cli.output import print_row, say
from zconsole.errors import ExitCode, NotFoundError, UsageError, ZconsoleError
from zconsole.pool.scrub_window import ScrubWindow


def run(args: argparse.Namespace) -> int:
    """List the scrub hours of all pools, or set or drop those of one; return the exit code."""
    _check(args)
    backend = live_backend(read_only=args.read_only)
    if args.action == "list":
        found = backend.windows.windows()
        if not found and not args.json:
            say("no hours are set; to set some: zconsole scrub window POOL 22:00-06:00")
        for window in found:
            print_row(asdict(window), line(window), args.json)
        return ExitCode.OK
    refuse_denied(args, f"{args.action} changes scrubs", undoes=args.action == "off")
    if args.action == "resume":
        backend.windows.resume()
        return ExitCode.OK
    hours = read_hours(args.hours) if args.action == "window" else ""
    return event_loop.run(_switch(backend, args.pool, hours))


def _check(args: argparse.Namespace) -> None:
    """Raise UsageError if an action lacks an argument, or would silently ignore one."""
    about_one = args.action in ("window", "off")
    if about_one and not args.pool:
        raise UsageError(f"{args.action} needs a POOL")
    if args.pool and not about_one:
        raise UsageError(f"{args.action} takes no POOL")
    if args.action == "window" and not args.hours:
        raise UsageError("window needs hours, such as 22:00-06:00")
    if args.hours and args.action == "off":
        raise UsageError("off takes no hours: it drops those that are set")


def line(window: ScrubWindow) -> str:
    """Return a line of text about a pool's scrub hours, by what is recorded of its scrub."""
    begun = "paused" if window.paused else "running"
    state = begun if window.begun else ""
    words = hours_words(window, state, datetime.now().astimezone())
    return f"{window.pool}: scrub only in the hours {window.hours} ({words})"


async def _switch(backend: ActionBackend, pool: str, hours: str) -> int:
    """Set a pool's scrub hours, or drop them if ``hours`` is empty, and print the consequences.

    Raises ZconsoleError if that is refused or fails.
    """
    feed = local.feed_on_demand((pool,))
    rounds = RoundsOnDemand(feed)
    try:
        frame = next((f for f in await rounds.frames() if f.pool == pool), None)
        if frame is None:
            raise NotFoundError(f"no such pool: {pool}")
        bare = situation_of(frame, Facts())
        s = situation_of(frame, await backend.ask(bare.pool, bare.suspended))
        windows = backend.windows.windows
        plan = plan_window(s, hours) if hours else plan_window_off(s, windows())
        executor = backend.executor(Refresher(rounds.fresh, backend.ask))
        async for event in executor.run(plan):
            if event.kind == "begun":
                for text in plan.consequences:
                    say(text)
            elif event.kind == "refused":
                raise ZconsoleError(f"not run: {event.text}")
            elif event.kind == "failed":
                raise ZconsoleError(event.text)
            elif event.kind in ("output", "warning"):
                say(event.text)
        return ExitCode.OK
    finally:
        await feed.aclose()
