"""Continuation of saved state where no command does it; adapters to zconsole's internals.

Each function runs in a separate process, with the state directory in `$ZCONSOLE_STATE`, and prints
the result. When the program's internals change, these functions follow, and their output stays.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC
from pathlib import Path

from tests.unit.actions.test_window_keeper import Night
from tests.unit.swap.playing import EMPTY, NEW, OLD, Play, fresh
from zconsole.cli import event_loop, local, output
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.swap.report import markdown
from zconsole.swap.store import Guide, SwapStore
from zconsole.system.audit import MemoryLog
from zconsole.system.state_dir import state_dir
from zconsole.timeline.feed import SessionFeed
from zconsole.tunables.control import Control
from zconsole.tunables.holds import Setter
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.store import TunableStore
from zconsole.zfs.sources.replay import ReplaySource

# Tunables.


def tunables(_words: Sequence[str]) -> int:
    """Print what a console offers to restore, and what it reports about changes."""
    control = Control(Parameters(), TunableStore(state_dir(False)), MemoryLog())
    past = control.past()
    for name, hold in sorted(past.holds.items()):
        found = control.setting(name)
        if found.hold is not None and not hold.process and hold.by is not Setter.COMMAND:
            print(f"left by a process that is gone: {name}={found.value}, was {found.original}")
    for change in past.changes:
        print(f"changed at {change.t:.0f}: {change.name} {change.before} to {change.after}")
    ends = {name: hold.until for name, hold in past.holds.items() if hold.until}
    print("to restore after a scan:", ends, "in place:", past.in_place)
    return 0


# The hours of scrubs.


class Hours:
    """A simulated pool's scrub with a window that opens in one hour and closes two hours later."""

    LOOKS = (0.0, 1.1, 2.0, 3.0, 19.5, 1.0)
    """Hours that pass before each look."""

    def __init__(self) -> None:
        self.night = Night(state_dir(True))

    def left(self, looks: int) -> None:
        """Set the window, and check it ``looks`` times."""
        self.night.set(1, 3)
        for hours in self.LOOKS[:looks]:
            asyncio.run(self.night.after(hours))

    def go_on(self, looks: int, kept: tuple[ScrubWindow, ...]) -> None:
        """Repeat the run up to the moment of the archive, load what that kept, and continue."""
        self.left(looks)
        with self.night.records.open() as windows:
            windows.clear()
            windows.update({window.guid: window for window in kept})
        for hours in self.LOOKS[looks:]:
            asyncio.run(self.night.after(hours))
            scan = self.night.pool.scan
            word = "runs" if scan.running else "is paused" if scan.paused_since else "is over"
            windows = [asdict(window) for window in self.night.records.windows()]
            print(f"{hours:g} hours later: the scrub {word};", json.dumps(windows))
        print("\n".join(self.night.said))


def hours(words: Sequence[str]) -> int:
    """Continue scrub windows that were left after ``words[0]`` checks."""
    found = Hours()
    kept = found.night.records.windows()
    found.go_on(int(words[0]), kept)
    return 0


# Swaps.

Act = Callable[[Play], object]
_TO_THE_SCRUB: tuple[Act, ...] = (
    lambda play: play.hands.pull(OLD),
    lambda play: play.hands.insert(NEW, OLD),
    lambda play: play.do(),
    lambda play: play.until("light-off"),
    lambda play: play.do(),
)
WAYS: dict[str, tuple[Act, ...]] = {
    "pull": (
        lambda play: play.begin(),
        lambda play: play.do(),
        lambda play: play.do(),
        *_TO_THE_SCRUB,
        lambda play: play.do(),
        lambda play: play.until("report"),
    ),
    "replace": (
        lambda play: (play.hands.insert(NEW, EMPTY), play.begin()),
        lambda play: play.do(),
        lambda play: play.until("light"),
        lambda play: play.do(),
        lambda play: play.hands.pull(OLD),
        lambda play: play.do(),
        lambda play: play.answer("no-scrub"),
    ),
    "spare": (
        lambda play: (play.pool.spares.append(fresh()), play.begin()),
        lambda play: play.do(),
        lambda play: play.until("offline"),
        lambda play: play.do(),
        lambda play: play.do(),
        *_TO_THE_SCRUB,
        lambda play: play.answer("no-scrub"),
    ),
}
"""Actions of each kind of swap, in order."""


def left(way: str, states: Path) -> None:
    """Play a swap, and save its checklist after each action, in a directory of its own."""
    play = Play(lights=True)
    for number, act in enumerate(WAYS[way]):
        act(play)
        play.look()
        state = states / str(number)
        state.mkdir(mode=0o700)
        store = SwapStore(state)
        store.save(play.checklist)
        store.close()


def swap(words: Sequence[str]) -> int:
    """Continue a swap from each of its saved checklists, by one action each."""
    way, states = words[0], Path(words[1])
    play = Play(lights=True)
    for number, act in enumerate(WAYS[way]):
        act(play)
        print(f"then: {_step(play)}")
        play.store = SwapStore(states / str(number))
        (kept,) = play.store.read()
        play.guide = Guide(kept, play.store)
        print(f"kept after act {number}: {_step(play)}")
    print(markdown(play.checklist, UTC))
    return 0


def _step(play: Play) -> str:
    stage = play.look()
    log = [f"{entry.t:.0f} {entry.text}" for entry in play.checklist.log]
    return f"{stage.step}: {stage.title} ({'; '.join(log[-1:])})"


# Histories and reports.


def watch(words: Sequence[str]) -> int:
    """Continue histories and reports: watch the samples of a recording."""
    return event_loop.run(_watched(words))


async def _watched(words: Sequence[str]) -> int:
    feed = SessionFeed(ReplaySource(words[0], None), local.session(keep=True), 0.0)
    async for update in event_loop.rounds(feed):
        for note in update.notes:
            output.say(note)
        output.show(update.frames, "--json" in words, UTC)
    await feed.aclose()
    return 0
