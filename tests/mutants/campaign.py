"""All mutants, one stage after the other; what was found is kept between two runs."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import model
from tests.mutants.forked import DiedError, HangsError, forked
from tests.mutants.generate import Mutant
from tests.mutants.plant import plant
from tests.mutants.reached import SLACK, SLOWER, Failures, Lines, Recorder, quietly

TESTS = (
    "tests/faults", "tests/unit/rebalance", "tests/cuts", "--ignore=tests/faults/test_kill.py",
)  # fmt: skip
"""All but one that does at length what the model does, too, and takes as long as the rest."""
SHARE = 3
"""Of the tests that reach a mutant the likeliest are run, as many as take such a part of what all
tests take."""
LIKELY = 5
"""What a mutant of the same module that a test has caught is worth in its favour."""
RECORDING = 3600.0
"""Seconds in which all of them have ended."""
PATIENCE = 1800.0
"""Seconds for a trial of the model, which counts those of its processor itself."""


@dataclass(slots=True)
class Verdict:
    """What became of one mutant so far."""

    stages: int = 0
    """How many stages it has been through."""
    caught_by: str = ""
    hangs: bool = False
    what: str = ""
    """What went wrong."""


@dataclass(slots=True)
class Progress:
    """What all runs have found."""

    sources: str
    """Digest of what was tested, and of what tests it."""
    workloads: dict[str, Lines] = field(default_factory=dict)
    tests: dict[str, tuple[float, Lines]] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, sources: str) -> Progress:
        """That of a file; a new one where the file is of other sources."""
        try:
            data = json.loads(path.read_text())
        except (OSError, ValueError):
            return cls(sources)
        if data["sources"] != sources:
            return cls(sources)
        verdicts = {name: Verdict(**verdict) for name, verdict in data["verdicts"].items()}
        return cls(sources, data["workloads"], data["tests"], verdicts)

    def save(self, path: Path) -> None:
        """Write it in the place of what was there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(path)

    def of(self, mutant: Mutant) -> Verdict:
        """What is known of a mutant."""
        return self.verdicts.setdefault(mutant.identity, Verdict())


def _reaches(lines: Lines, mutant: Mutant) -> bool:
    return any(mutant.line <= line <= mutant.end for line in lines.get(mutant.module, ()))


Trial = Callable[[], str]
"""Says what went wrong; empty where nothing did."""
Times = tuple[float, float]
"""Seconds of a processor for one step of the model, and for all."""


def by_model(
    steps: Sequence[model.Step], times: Times, progress: Progress, mutant: Mutant
) -> tuple[Trial, float]:
    """Experiments with the workloads that reach a mutant."""
    names = [name for name, lines in progress.workloads.items() if _reaches(lines, mutant)]
    return partial(model.wrong, steps, names, *times), PATIENCE if names else 0.0


def by_tests(progress: Progress, mutant: Mutant) -> tuple[Trial, float]:
    """The tests that reach a mutant, the likeliest to catch it for their seconds first."""
    caught = Counter(
        verdict.what
        for identity, verdict in progress.verdicts.items()
        if identity.startswith(f"{mutant.module}.")
    )
    reaching = {
        test: seconds
        for test, (seconds, lines) in progress.tests.items()
        if _reaches(lines, mutant)
    }
    left = sum(seconds for seconds, _ in progress.tests.values()) / SHARE
    chosen: dict[str, float] = {}
    for test in sorted(reaching, key=lambda test: reaching[test] / (1 + LIKELY * caught[test])):
        if reaching[test] <= left or not chosen:
            left -= reaching[test]
            chosen[test] = reaching[test]
    limit = SLACK + SLOWER * sum(chosen.values())
    return partial(failing, chosen), limit if chosen else 0.0


def failing(tests: Mapping[str, float]) -> str:
    """The first of these tests that fails; empty where all pass. They take so many seconds."""
    failures = Failures(tests)
    with tempfile.TemporaryDirectory() as area:
        code = quietly(["-x", *tests], failures, Path(area))
    if failures.tests or code == pytest.ExitCode.OK:
        return "".join(failures.tests[:1])
    return f"pytest ended with {code}"


def warm() -> None:
    """Import all tests, which else every trial would do again."""
    with tempfile.TemporaryDirectory() as area:
        quietly(["--collect-only", *TESTS], object(), Path(area))


def record() -> dict[str, tuple[float, Lines]]:
    """Of every test that passes its seconds, and the lines it reaches."""

    def _recorded() -> dict[str, Any]:
        recorder = Recorder()
        with tempfile.TemporaryDirectory() as area:
            quietly([*TESTS], recorder, Path(area))
        return recorder.tests

    found: dict[str, tuple[float, Lines]] = forked(_recorded, RECORDING)
    return found


def tried(trial: Trial, seconds: float, mutant: Mutant | None) -> tuple[str, bool]:
    """What goes wrong with a mutant in a process of its own, and whether that hung.

    Raises RuntimeError for a mutant that cannot be planted, KeyboardInterrupt.
    """

    def _planted() -> str | None:
        try:
            if mutant is not None:
                plant(mutant)
        except Exception:
            return None
        return trial()

    try:
        what = forked(_planted, seconds) if seconds else ""
        if what is None:
            raise RuntimeError(f"{mutant} cannot be planted")
        return what, False
    except HangsError:
        return "hangs", True
    except DiedError as error:
        return f"died: {error}", False


Stage = tuple[str, Callable[[Progress, Mutant], tuple[Trial, float]]]


def stages(rounds: int) -> tuple[Stage, ...]:
    """Who catches them, and how: the quickest first."""
    return (
        ("model", partial(by_model, model.quick(), (model.HANGS, model.QUICK))),
        ("tests", by_tests),
        ("model", partial(by_model, model.long(rounds), (model.HANGS_LONG, model.LONG))),
    )


def judge(progress: Progress, mutant: Mutant, number: int, stage: Stage) -> None:
    """Take a mutant that nobody has caught through one stage."""
    verdict, (name, prepared) = progress.of(mutant), stage
    trial, seconds = prepared(progress, mutant)
    what, hangs = tried(trial, seconds, mutant)
    if what in progress.tests:
        alone = partial(failing, {what: progress.tests[what][0]})
        if tried(alone, PATIENCE, None)[0] or not tried(alone, PATIENCE, mutant)[0]:
            del progress.tests[what]  # it fails without the mutant, too, or by chance
            return judge(progress, mutant, number, stage)
    if what.startswith("pytest") and tried(trial, seconds, None)[0]:
        raise RuntimeError(f"{what} without a mutant, too")
    if hangs and name == "tests" and tried(trial, seconds, None)[1]:
        what, hangs = "", False  # the machine is too busy to say
    verdict.stages = number
    if what:
        verdict.caught_by, verdict.hangs, verdict.what = name, hangs, what
    return None


def run(
    mutants: Sequence[Mutant], progress: Progress, rounds: int, kept: Callable[[Mutant], None]
) -> None:
    """Take all mutants through all stages; ``kept`` after each step of one."""
    progress.workloads = progress.workloads or forked(model.lines, PATIENCE)
    for number, stage in enumerate(stages(rounds), start=1):
        if stage[0] == "tests":
            warm()
            progress.tests = progress.tests or record()
        for mutant in mutants:
            verdict = progress.of(mutant)
            if verdict.stages == number - 1 and not verdict.caught_by:
                judge(progress, mutant, number, stage)
                kept(mutant)
