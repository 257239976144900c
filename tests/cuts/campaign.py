"""Experiments on every workload, in rounds; progress is kept between two runs."""

from __future__ import annotations

import gc
import json
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.cuts.choices import ChoicesTaken, Choose, EveryChoice, by_chance, given
from tests.cuts.experiment import Experiments
from tests.cuts.workloads import Workload

FEW = 48
"""A cut with at most this many states has all of them tried in the first round."""
A_CUT = 6
"""States of a cut that are tried in each later round."""
DISTURBED = 12
"""Failing calls, and interfering processes, in each round of a workload."""
SHOWN = 20
"""Failures that are kept per workload."""


class Failure(NamedTuple):
    """A failed experiment: what went wrong, and the choices that repeat it."""

    repeat: str
    problems: tuple[str, ...]


@dataclass(slots=True)
class Tally:
    """Counts of what was done with one workload."""

    name: str
    calls: int = 0
    cuts: int = 0
    states: int = 0
    errors: int = 0
    others: int = 0
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)

    def reset(self, before: Mapping[str, Any]) -> None:
        """Discard an unfinished part of a round; it is repeated when the campaign continues."""
        for name, value in before.items():
            setattr(self, name, value)


@dataclass(slots=True)
class Rounds:
    """Experiments of one workload, a round at a time."""

    workload: Workload
    seed: str
    tally: Tally
    a_cut: int = A_CUT
    disturbed: int = DISTURBED
    _experiments: Experiments | None = None

    def round(self, number: int) -> None:
        """Run every cut, and some failing calls and interfering processes."""
        made = self._made()
        source = random.Random(f"{self.seed}:{self.workload.name}:{number}")
        if number == 0:
            self._judge((), lambda _: made.undisturbed())
        for at in range(len(made.timeline.cuts())):
            self._cut(at, source, number)
        for at in range(number * self.disturbed, (number + 1) * self.disturbed):
            self._error(at, source)
            self.tally.errors += 1
            if not self.workload.alone:
                self._run((2,), by_chance(source))
                self.tally.others += 1
        gc.collect()

    def _made(self) -> Experiments:
        if self._experiments is None:
            made = self._experiments = Experiments(self.workload)
            self.tally.calls, self.tally.cuts = made.calls, len(made.timeline.cuts())
        return self._experiments

    def _cut(self, at: int, source: random.Random, number: int) -> None:
        """Try all states of a cut if there are few, else a sample."""
        every = EveryChoice()
        tried = 0
        while number == 0 and tried < FEW and every.next():
            self._run((0, at), every)
            tried += 1
        for _ in range(self.a_cut if number or tried == FEW else 0):
            self._run((0, at), by_chance(source))

    def _error(self, at: int, source: random.Random) -> None:
        """Try the next pair of a call and an error, in random order."""
        order = list(range(len(self._made().faults())))
        random.Random(f"{self.seed}:{self.workload.name}").shuffle(order)
        self._run((1, order[at % len(order)]), by_chance(source))

    def _run(self, begin: Sequence[int], choose: Choose) -> None:
        """Run one experiment that starts with these choices."""
        first = list(reversed(begin))
        taken = ChoicesTaken(lambda most: first.pop() if first else choose(most))
        self._judge(taken.taken, lambda made: made.any(taken))

    def _judge(
        self, taken: Iterable[int], experiment: Callable[[Experiments], Iterator[str]]
    ) -> None:
        made = self._made()
        before = made.states
        problems = judged(experiment(made))
        self.tally.states += made.states - before
        if problems:
            self.tally.failed += 1
            if len(self.tally.failures) < SHOWN:
                repeat = f"{self.workload.name}:{','.join(map(str, taken))}"
                self.tally.failures.append(Failure(repeat, problems))


def judged(problems: Iterator[str]) -> tuple[str, ...]:
    """Return all problems, including an exception of the engine."""
    found: list[str] = []
    try:
        found.extend(problems)
    except Exception as error:
        found.append(f"raised {error!r}")
    return tuple(dict.fromkeys(found))


def repeated(workloads: Iterable[Workload], repeat: str) -> tuple[str, ...]:
    """Return the problems of a repeated experiment. Raises KeyError for an unknown workload."""
    name, _, numbers = repeat.rpartition(":")
    workload = {each.name: each for each in workloads}[name]
    choose = given([int(number) for number in numbers.split(",") if number])
    return judged(Experiments(workload).any(choose))


@dataclass(slots=True)
class Progress:
    """The work that all runs of one campaign have done."""

    seed: str
    sources: str
    """Digest of the tested code."""
    parts: int = 0
    """Rounds of single workloads that are done."""
    tallies: dict[str, Tally] = field(default_factory=dict)

    @property
    def states(self) -> int:
        """Return the number of crash states tried, over all workloads."""
        return sum(tally.states for tally in self.tallies.values())

    @classmethod
    def load(cls, path: Path, seed: str, sources: str) -> Progress:
        """Load the progress from a file; start anew if it has another seed or other sources."""
        try:
            data = json.loads(path.read_text())
        except (OSError, ValueError):
            return cls(seed, sources)
        if (data["seed"], data["sources"]) != (seed, sources):
            return cls(seed, sources)
        tallies = {name: Tally(**tally) for name, tally in data["tallies"].items()}
        for tally in tallies.values():
            tally.failures = [Failure(repeat, tuple(what)) for repeat, what in tally.failures]
        return cls(seed, sources, data["parts"], tallies)

    def save(self, path: Path) -> None:
        """Write the progress to a file, atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(path)

    def tally(self, workload: Workload) -> Tally:
        """Return the tally of a workload, created at first use."""
        return self.tallies.setdefault(workload.name, Tally(workload.name))


def run(
    workloads: Sequence[Workload], progress: Progress, crashes: int, kept: Callable[[], None]
) -> None:
    """Continue with rounds until ``crashes`` states were tried; calls ``kept`` after each part."""
    rounds = [Rounds(each, progress.seed, progress.tally(each)) for each in workloads]
    gc.collect()
    gc.freeze()
    gc.disable()  # garbage of the experiments is collected after each round
    try:
        while progress.states < crashes:
            number, at = divmod(progress.parts, len(rounds))
            before = asdict(rounds[at].tally)
            try:
                rounds[at].round(number)
            except KeyboardInterrupt:
                rounds[at].tally.reset(before)
                raise
            progress.parts += 1
            kept()
    finally:
        gc.enable()
