"""Amount of code that one sample of the demo runs through until it is painted.

``python -m tests.bench.sample_path [SCENARIO]`` counts the files, functions and classes of zconsole
that run, by sys.setprofile, and lists where most of them are. The simulation itself, which stands
in for the kernel, does not count, nor does what only it calls.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from types import CodeType, FrameType

import zconsole
from zconsole.sim.backends.actions import simulated_backend
from zconsole.sim.probes import details_of
from zconsole.sim.source import SimulatedSource
from zconsole.timeline.feed import SessionFeed, Update
from zconsole.timeline.session import Session
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.start import make_console

ROOT = Path(zconsole.__file__).parent
_SIMULATION = str(ROOT / "sim")
SIZE = (120, 40)
BEFORE = 30
"""Samples before the measured one: by then there is an estimate and a verdict."""


class SteppedFeed(SessionFeed):
    """A feed that runs one round each time it is released."""

    def __init__(self, source: SimulatedSource, session: Session) -> None:
        super().__init__(source, session, 0.0, partial(details_of, source.world))
        self.gate = asyncio.Semaphore(0)

    async def sample(self) -> Update | None:
        await self.gate.acquire()
        return await super().sample()


class Passed:
    """The code of zconsole that runs while it is watched."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()

    def see(self, frame: FrameType, event: str, _: object) -> None:
        """Handle an event of sys.setprofile."""
        if event == "call" and frame.f_code not in self.codes and not _is_simulated(frame):
            self.codes.add(frame.f_code)

    def functions(self) -> dict[str, set[str]]:
        """Return the qualified names of functions by file, relative to the package."""
        found: dict[str, set[str]] = {}
        for code in self.codes:
            path, name = Path(code.co_filename), code.co_qualname
            if not path.is_relative_to(ROOT):
                continue
            if not code.co_name.startswith("<"):  # comprehensions are part of their function
                found.setdefault(str(path.relative_to(ROOT)), set()).add(name)
        return found


def _is_simulated(frame: FrameType | None) -> bool:
    """Return whether a frame is of the simulation, or called by it."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(_SIMULATION):
            return True
        frame = frame.f_back
    return False


async def passed(scenario: str) -> Passed:
    """Return the code that one sample of a scenario runs, until nothing is left to paint."""
    seconds, seen = iter(range(10**6)), Passed()
    source = SimulatedSource(scenario, 1, start=1_800_000_000.0, clock=lambda: float(next(seconds)))
    feed = SteppedFeed(source, Session(flags=("DEMO",), goes_on=True))
    console = make_console(
        feed,
        ConsoleOptions(host="bench"),
        {"LANG": "C.UTF-8"},
        make_backend=partial(simulated_backend, source.world),
    )
    async with console.run_test(size=SIZE) as pilot:
        for _ in range(BEFORE):
            feed.gate.release()
            await pilot.pause(0.02)
        while feed.contributor is None:  # actions are loaded in the background
            await pilot.pause(0.02)
        sys.setprofile(seen.see)
        feed.gate.release()
        await pilot.pause(0.2)
        sys.setprofile(None)
    return seen


def report(found: dict[str, set[str]]) -> None:
    """Print the counts, and the packages and files with the most functions."""
    classes = {
        (path, name.rpartition(".")[0])
        for path, names in found.items()
        for name in names
        if "." in name and not name.rpartition(".")[0].endswith("<locals>")
    }
    functions = sum(map(len, found.values()))
    print(f"{len(found)} files, {functions} functions, {len(classes)} classes")
    packages, files = Counter[str](), Counter[str]()
    for path, names in found.items():
        packages[path.split("/")[0]] += len(names)
        files[path.split("/")[0]] += 1
    for package, count in packages.most_common():
        print(f"{count:5} functions in {files[package]:3} files of {package}")
    for path in sorted(found, key=lambda path: -len(found[path]))[:25]:
        print(f"{len(found[path]):5} {path}")


if __name__ == "__main__":
    report(asyncio.run(passed((sys.argv[1:] or ["resilver"])[0])).functions())
