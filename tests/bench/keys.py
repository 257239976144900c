"""How long a key waits to be painted while the console watches a thousand leaves.

``python -m tests.bench.keys [--leaves N] [--pools P] [--keys K]``: a console on 80×24 that samples
``large`` pools once a second; a thread presses keys that move its cursor, each while a tick is
being processed. Prints the milliseconds from a key to the paint that follows it: of CPU (the time
that it would take on an idle machine, without pauses) and of real time; then those of the first
round, from its raw forms to its paint.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import threading
import time
from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

from textual import events
from textual._compositor import CompositorUpdate

from tests.bench.large import LargeSource
from tests.bench.tick import SIZE, yardstick
from zconsole.timeline.feed import SessionFeed, Update
from zconsole.timeline.session import Session
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.start import make_console
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.base import Capabilities

KEYS = ("down", "pagedown", "down", "up", "pageup", "down")
"""Keys in an order in which each moves the cursor: otherwise there would be no paint to wait for.
"""
WHOLE = 0.3
"""Seconds of a tick within which keys are pressed."""
Moment = tuple[float, float]
"""CPU seconds and clock seconds."""


def now() -> Moment:
    return time.process_time(), time.perf_counter()


class LargeRounds:
    """A source of rounds of large pools; each is ready before it is asked for."""

    capabilities = Capabilities("demo")

    def __init__(self, source: LargeSource) -> None:
        self._source = source
        self.begun: Moment | None = None
        """The moment at which the first round was ready."""
        self.working = threading.Event()
        """Set while a round is ready and not yet shown."""
        source.ask()

    async def sample(self) -> tuple[Raw, ...]:
        received = await asyncio.to_thread(self._source.receive)
        answers = self._source.read(received)  # in production, a helper process does this
        self.working.set()
        if self.begun is None:
            self.begun = now()
        raws = []
        for raw in self._source.raws(received, answers):
            raws.append(raw)
            await asyncio.sleep(0)  # each pool's answer arrives separately
        self._source.ask()
        return tuple(raws)

    async def aclose(self) -> None:
        self._source.receive()


class Presses:
    """Presses keys from a thread, and records when each was painted."""

    def __init__(self, console: Any, rounds: LargeRounds, count: int) -> None:
        self._console = console
        self._working = rounds.working
        self._loop = asyncio.get_running_loop()
        self._count = count
        self._pressed: Moment | None = None
        self._taken = False
        self._shown = False
        self.waits: list[Moment] = []
        self.first: Moment | None = None
        """The moment at which the first round was painted."""
        self._on_event, console.on_event = console.on_event, self._hear
        self._take, console.take = console.take, self._show
        self._display, console._display = console._display, self._paint

    def press_all(self) -> None:
        """Press keys, each at a random moment of the tick after the previous key was painted."""
        chance = random.Random(1)
        for name in islice(cycle(KEYS), self._count):
            time.sleep(0.3)
            self._working.wait()
            time.sleep(chance.uniform(0.0, WHOLE))
            key = events.Key(name, None)
            self._pressed = now()
            self._loop.call_soon_threadsafe(self._console.post_message, key)
            for _ in range(100):
                if self._pressed is None:
                    break
                time.sleep(0.02)
            self._pressed, self._taken = None, False  # a key without effect is not painted

    async def _hear(self, event: events.Event) -> None:
        await self._on_event(event)
        self._taken = self._taken or (isinstance(event, events.Key) and self._pressed is not None)

    def _show(self, update: Update) -> None:
        self._take(update)
        self._shown = True
        self._working.clear()

    def _paint(self, screen: Any, renderable: Any) -> None:
        if isinstance(renderable, CompositorUpdate):
            renderable.render_segments(self._console.console)  # as a real terminal would
        self._display(screen, renderable)
        if self._shown and self.first is None:
            self.first = now()
        if self._taken and self._pressed is not None:
            self.waits.append(_apart(self._pressed, now()))
            self._pressed, self._taken = None, False


def _apart(begin: Moment, end: Moment) -> Moment:
    return end[0] - begin[0], end[1] - begin[1]


def report(what: str, waits: Sequence[float]) -> None:
    ordered = sorted(1e3 * each for each in waits)
    half, most = ordered[len(ordered) // 2], ordered[int(0.95 * len(ordered))]
    print(f"{what}: half within {half:.0f} ms, 95 % within {most:.0f} ms, all {ordered[-1]:.0f} ms")


async def measure(leaves: int, pools: int, count: int) -> None:
    with LargeSource(leaves, pools) as source:
        rounds = LargeRounds(source)
        feed = SessionFeed(rounds, Session(), 1.0)
        console = make_console(feed, ConsoleOptions(host="bench"), {"LANG": "C.UTF-8"})
        async with console.run_test(size=SIZE):
            presses = Presses(console, rounds, count)
            await asyncio.sleep(5)
            thread = threading.Thread(target=presses.press_all)
            thread.start()
            while thread.is_alive():
                await asyncio.sleep(0.1)
    began = time.process_time()
    yardstick()
    print(f"yardstick: {1e3 * (time.process_time() - began):.1f} ms (a fixed loop of Python)")
    print(f"{len(presses.waits)} of {count} keys painted something")
    report("CPU", [cpu for cpu, _ in presses.waits])
    report("went by", [wall for _, wall in presses.waits])
    assert rounds.begun is not None
    assert presses.first is not None
    cpu, wall = _apart(rounds.begun, presses.first)
    print(f"first round: {1e3 * cpu:.0f} ms of CPU, {1e3 * wall:.0f} ms went by")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leaves", type=int, default=1_000)
    parser.add_argument("--pools", type=int, default=4)
    parser.add_argument("--keys", type=int, default=140)
    given = parser.parse_args()
    asyncio.run(measure(given.leaves, given.pools, given.keys))
