"""All mutants, one stage after another; results are kept between two runs."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from tests.mutants import model
from tests.mutants.copies import Lines
from tests.mutants.forked import forked
from tests.mutants.generate import MODULES, Mutant, mutants
from tests.mutants.plant import plant
from tests.mutants.reached import (
    HANGS,
    Reached,
    answer,
    failing,
    files_of,
    first_failure,
    limit,
    quietly,
    recorded,
    within,
)

TESTS = files_of(
    "tests/faults", "tests/unit/rebalance", "tests/cuts", but=("tests/faults/test_kill.py",)
)
"""All tests but one, which covers at length what the model covers, and takes as long as the rest.
"""
SHARE = 3
"""Of the tests that reach a mutant, the likeliest are run until they take 1/SHARE of the time that
all tests take."""
LIKELY = 5
"""Weight of an earlier catch in the same module, when the likeliest tests are chosen."""
PATIENCE = 1800.0
"""Seconds for a trial of the model, which limits its own CPU seconds."""
Times = tuple[float, float]
"""CPU seconds for one step of the model, and for all steps."""


@dataclass(slots=True)
class Verdict:
    """The result of one mutant so far."""

    stages: int = 0
    """Number of stages that it has been through."""
    caught_by: str = ""
    hangs: bool = False
    what: str = ""
    """What went wrong with it."""


@dataclass(slots=True)
class Progress:
    """The results of all runs."""

    sources: str
    """Digest of the tested code and its tests."""
    workloads: dict[str, Lines] = field(default_factory=dict)
    tests: dict[str, tuple[float, Lines]] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, sources: str) -> Progress:
        """Load results from a file; start anew if the file is of other sources."""
        try:
            data = json.loads(path.read_text())
        except (OSError, ValueError):
            return cls(sources)
        if data["sources"] != sources:
            return cls(sources)
        verdicts = {name: Verdict(**verdict) for name, verdict in data["verdicts"].items()}
        return cls(sources, data["workloads"], data["tests"], verdicts)

    def save(self, path: Path) -> None:
        """Write the results to a file, atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(path)

    def of(self, mutant: Mutant) -> Verdict:
        """Return the verdict of a mutant, created at first use."""
        return self.verdicts.setdefault(mutant.identity, Verdict())


def by_model(steps: Sequence[model.Step], times: Times, progress: Progress, mutant: Mutant) -> str:
    """Return what goes wrong in experiments with the workloads that reach a mutant."""
    workloads = [Reached(name, 0.0, lines) for name, lines in progress.workloads.items()]
    names = [each.test for each in workloads if each.reaches(mutant)]
    return tried(partial(model.wrong, steps, names, *times), PATIENCE, mutant) if names else ""


def by_tests(progress: Progress, mutant: Mutant) -> str:
    """Return the first failure of the tests that reach a mutant, the likeliest per second first."""
    module, _, _ = mutant.identity.partition(".")
    caught = Counter(
        verdict.what
        for identity, verdict in progress.verdicts.items()
        if identity.startswith(f"{module}.")
    )
    tests = [Reached(test, *rest) for test, rest in progress.tests.items()]
    reaching = [test for test in tests if test.reaches(mutant)]
    reaching.sort(key=lambda each: each.seconds / (1 + LIKELY * caught[each.test]))
    seconds = sum(test.seconds for test in tests) / SHARE
    chosen = within(seconds, {each.test: each.seconds for each in reaching})

    def _attempt(some: Mapping[str, float], mistaken: bool) -> str:
        return tried(partial(failing, some), limit(some), mutant if mistaken else None)

    return first_failure(chosen, _attempt)


def record() -> dict[str, tuple[float, Lines]]:
    """Return, for every passing test, its seconds and the lines of the engine that it reaches."""
    files = {mutant.file for module in MODULES for mutant in mutants(module)}
    return {
        each.test: (each.seconds, {file: each.lines[file] for file in reached})
        for each in recorded(TESTS, jobs=1)
        if (reached := files & each.lines.keys())
    }


def tried(trial: Callable[[], str], seconds: float, mutant: Mutant | None) -> str:
    """Return what goes wrong with a mutant in a separate process; empty if nothing does.

    Raises RuntimeError for a mutant that cannot be planted, KeyboardInterrupt.
    """

    def _planted() -> str | None:
        try:
            if mutant is not None:
                plant(mutant)
        except Exception:
            return None
        return trial()

    what: str | None = answer(lambda: forked(_planted, seconds))
    if what is None:
        raise RuntimeError(f"{mutant} cannot be planted")
    return what


Stage = tuple[str, Callable[[Progress, Mutant], str]]


def stages(rounds: int) -> tuple[Stage, ...]:
    """Return the stages that try to catch mutants, the fastest first."""
    return (
        ("model", partial(by_model, model.quick(), (model.HANGS, model.QUICK))),
        ("tests", by_tests),
        ("model", partial(by_model, model.long(rounds), (model.HANGS_LONG, model.LONG))),
    )


def run(
    chosen: Sequence[Mutant], progress: Progress, rounds: int, kept: Callable[[Mutant], None]
) -> None:
    """Take mutants through all stages; calls ``kept`` after each step of one."""
    progress.workloads = progress.workloads or forked(model.lines, PATIENCE)
    for number, (name, wrong) in enumerate(stages(rounds), start=1):
        if name == "tests":
            progress.tests = progress.tests or record()
            quietly(["--collect-only", *TESTS], object())  # imports modules once for all trials
        for mutant in chosen:
            verdict = progress.of(mutant)
            if verdict.stages == number - 1 and not verdict.caught_by:
                verdict.stages = number
                if what := wrong(progress, mutant):
                    verdict.caught_by, verdict.hangs, verdict.what = name, what == HANGS, what
                kept(mutant)
