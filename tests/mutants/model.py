"""The first stage: experiments on the model filesystem, until one of them goes wrong."""

from __future__ import annotations

import gc
import random
import signal
from collections.abc import Callable, Collection, Iterator, Sequence

from tests.cuts.__main__ import EVERYTHING
from tests.cuts.campaign import Rounds, Tally, judged
from tests.cuts.choices import by_chance, given
from tests.cuts.experiment import Experiments
from tests.cuts.machine import isolated
from tests.cuts.others import ACTS, Other
from tests.cuts.workloads import Workload
from tests.mutants.reached import Lines, Tracer

CRASHES, DISTURBED = 1, 6
"""Crashes of a cut, and calls that fail, in each round of a workload."""
PAUSES = (0, 1, 3)
"""Calls that others let pass between two of their steps."""
SWEPT = ("one file", "links in two directories", "no exchange")
"""Workloads of which every call fails in every way, and others come at each."""
HANGS = 10
"""Seconds of a processor for one step with one workload; a round takes less than one."""
HANGS_LONG = 90
"""The same for the steps that take longer."""
Step = Callable[[Workload], Iterator[str]]
"""Says what is wrong."""


def lines() -> dict[str, Lines]:
    """The lines that the experiments of each workload reach."""
    tracer, found = Tracer(), {}
    with isolated():
        for workload in EVERYTHING:
            with tracer.tracing():
                for step in (_undisturbed, *rounds(1)):
                    list(step(workload))
            found[workload.name] = tracer.taken()
    return found


def quick() -> tuple[Step, ...]:
    """What catches most mutants."""
    return _undisturbed, *rounds(1, scenarios=False)


def long(number: int) -> tuple[Step, ...]:
    """What those are tried with that nothing else has caught: rounds up to a number."""
    return _every_error, _others_at_every_call, *rounds(number)


def wrong(steps: Sequence[Step], names: Collection[str], hangs: float) -> str:
    """The first that goes wrong with the workloads of these names; empty where all goes well.

    A step that takes so many seconds of a processor ends this process.
    """
    workloads = [each for each in EVERYTHING if each.name in names]
    gc.disable()  # much faster, and this process ends soon
    with isolated():
        for step in steps:
            for workload in workloads:
                signal.setitimer(signal.ITIMER_VIRTUAL, hangs)
                try:
                    problem = next(step(workload), "")
                except Exception as error:
                    problem = f"raised {error!r}"
                if problem:
                    return f"{workload.name}: {problem}"
                gc.collect()
    return ""


def rounds(number: int, scenarios: bool = True) -> tuple[Step, ...]:
    """The first of a campaign of `.ci/cuts`, smaller ones."""

    def _round(at: int) -> Step:
        def _tried(workload: Workload) -> Iterator[str]:
            if workload.steps and not scenarios:
                return
            made = Rounds(workload, "mutants", Tally(workload.name), CRASHES, DISTURBED)
            made.round(at)
            for failure in made.tally.failures:
                yield f"{failure.problems[0]} (.ci/cuts --repeat '{failure.repeat}')"

        return _tried

    return tuple(_round(at) for at in range(1, number + 1))


def _undisturbed(workload: Workload) -> Iterator[str]:
    yield from judged(Experiments(workload).undisturbed())


def _every_error(workload: Workload) -> Iterator[str]:
    """Each call fails in each way, with no crash."""
    experiments = Experiments(workload)
    for number, code in experiments.faults() if workload.name in SWEPT else ():
        yield from judged(experiments.error(number, code, given(())))


def _others_at_every_call(workload: Workload) -> Iterator[str]:
    """Somebody begins at each call, quick or slow, and there is a crash now and then."""
    experiments, source = Experiments(workload), random.Random(workload.name)
    if workload.alone or workload.name not in SWEPT:
        return
    paths = list(experiments._before.files)
    for begin in range(1, experiments.calls + 1):
        for act in ACTS.values():
            for pause in PAUSES:
                other = Other(act, source.choice(paths), begin, pause)
                yield from judged(experiments.other(other, by_chance(source)))
