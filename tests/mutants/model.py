"""The first stage: experiments on the model filesystem, until one goes wrong."""

from __future__ import annotations

import gc
import random
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from tests.cuts.__main__ import EVERYTHING
from tests.cuts.campaign import Rounds, Tally, judged
from tests.cuts.choices import by_chance, given
from tests.cuts.experiment import Experiments
from tests.cuts.machine import isolated
from tests.cuts.others import ACTS, Other
from tests.cuts.workloads import Workload
from tests.mutants.copies import Lines, Map

CRASHES, DISTURBED = 1, 6
"""Crashes per cut, and failing calls, in each round of a workload."""
PAUSES = (0, 1, 3)
"""Calls of the engine between two steps of an interfering process."""
SWEPT = ("one file", "links in two directories", "no exchange")
"""Workloads in which every call fails in every way, and others interfere at each call."""
FIRST = (*SWEPT, "two links")
"""Workloads that are tried first, because they catch nearly all that the model catches."""
HANGS = 10
"""Limit of CPU seconds for one step with one workload; a round takes less than one."""
HANGS_LONG = 90
"""Limit of CPU seconds for the steps that take longer."""
QUICK, LONG = 10.0, 25.0
"""CPU seconds after which no further step starts."""
Step = Callable[[Workload], Iterator[str]]
"""Yields what is wrong with a workload."""


def lines() -> dict[str, Lines]:
    """Return the lines that each workload reaches. Call only in a process that ends soon."""
    found = {}
    with isolated(), tempfile.NamedTemporaryFile() as file:
        reached = Map(Path(file.name))
        reached.watch()
        for workload in EVERYTHING:
            for step in (_undisturbed, *rounds(1)):
                list(step(workload))
            found[workload.name] = reached.taken()
    return found


def quick() -> tuple[Step, ...]:
    """Return the steps that catch most mutants."""
    return _undisturbed, *rounds(1, FIRST)


def long(number: int) -> tuple[Step, ...]:
    """Return the steps for mutants that nothing else has caught: rounds up to a number."""
    return _every_error, _others_at_every_call, *rounds(number)


def wrong(
    steps: Sequence[Step], names: Collection[str], hangs: float, seconds: float = LONG
) -> str:
    """Return the first problem with the workloads of these names; empty if all goes well.

    A step that takes ``hangs`` CPU seconds ends this process; no step starts after ``seconds`` of
    them.
    """
    workloads = sorted(
        (each for each in EVERYTHING if each.name in names), key=lambda each: each.name not in FIRST
    )
    # Collecting seldom is much faster; without collecting, a thousand experiments would fill
    # MEMORY.
    gc.freeze()
    gc.set_threshold(50_000, 5, 5)
    until = time.process_time() + seconds
    with isolated():
        for step in steps:
            for workload in workloads:
                if time.process_time() > until:
                    return ""
                signal.setitimer(signal.ITIMER_VIRTUAL, hangs)
                try:
                    problem = next(step(workload), "")
                except Exception as error:
                    problem = f"raised {error!r}"
                if problem:
                    return f"{workload.name}: {problem}"
    return ""


def rounds(number: int, names: Collection[str] | None = None) -> tuple[Step, ...]:
    """Return the first rounds of a campaign of tests.cuts, smaller, with the named workloads."""

    def _round(at: int) -> Step:
        def _tried(workload: Workload) -> Iterator[str]:
            if names is not None and workload.name not in names:
                return
            made = Rounds(workload, "mutants", Tally(workload.name), CRASHES, DISTURBED)
            made.round(at)
            for failure in made.tally.failures:
                yield f"{failure.problems[0]} (python -m tests.cuts --repeat '{failure.repeat}')"

        return _tried

    return tuple(_round(at) for at in range(1, number + 1))


def _undisturbed(workload: Workload) -> Iterator[str]:
    yield from judged(Experiments(workload).undisturbed())


def _every_error(workload: Workload) -> Iterator[str]:
    """Make each call fail in each way, without a crash."""
    experiments = Experiments(workload)
    for number, code in experiments.faults() if workload.name in SWEPT else ():
        yield from judged(experiments.error(number, code, given(())))


def _others_at_every_call(workload: Workload) -> Iterator[str]:
    """Let others interfere from each call on, fast or slow, sometimes with a crash."""
    experiments, source = Experiments(workload), random.Random(workload.name)
    if workload.alone or workload.name not in SWEPT:
        return
    paths = list(experiments._before.files)
    for begin in range(1, experiments.calls + 1):
        for act in ACTS.values():
            for pause in PAUSES:
                other = Other(act, source.choice(paths), begin, pause)
                yield from judged(experiments.other(other, by_chance(source)))
