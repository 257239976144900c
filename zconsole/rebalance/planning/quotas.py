"""Quotas that a copy may meet: it counts twice until its original is gone.

Of datasets, and, from ``zfs userspace`` and its like (zfs-userspace(8)), of users, groups and
projects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from zconsole.rebalance.planning.facts import DEADLINE, Dataset, Run
from zconsole.rebalance.planning.plan_model import DirectoryPlan
from zconsole.system.process import DeadlineError
from zconsole.units import clean, size

COMMANDS = ("userspace", "groupspace", "projectspace")
NAMED = 3
"""Holders that are named; the others are counted."""


class Quota(NamedTuple):
    """What somebody may use of a dataset, and uses; bytes."""

    holder: str
    used: int
    limit: int

    @property
    def left(self) -> int:
        """Bytes that may still be written."""
        return max(0, self.limit - self.used)


def notes(run: Run, plans: Sequence[DirectoryPlan]) -> Iterator[str]:
    """What to know of the quotas of every dataset that is going to be copied, each once."""
    flights: dict[str, tuple[Dataset, int]] = {}
    for plan in plans:
        dataset = plan.place.dataset
        if dataset is not None and plan.choice.engine == "copy":
            flight = max(plan.in_flight, flights.get(dataset.name, (0, 0))[1])
            flights[dataset.name] = (dataset, flight)
    for dataset, flight in flights.values():
        yield from _of_dataset(dataset, flight)
        tight = sorted((q for q in held(run, dataset.name) if q.left < flight), key=_left)
        if tight:
            yield _words(dataset.name, tight)


def _left(quota: Quota) -> int:
    return quota.left


def _of_dataset(dataset: Dataset, flight: int) -> Iterator[str]:
    left = dataset.number("available")
    for name in ("quota", "refquota"):
        limit = dataset.number(name)
        if limit and left is not None and left < flight:
            text = f"{name} of {size(limit)}: {size(left)} left, and copies count twice"
            yield f"{clean(dataset.name)}: {text} until they are in place"


def _words(dataset: str, tight: Sequence[Quota]) -> str:
    named = ", ".join(f"{q.holder} ({size(q.left)} of {size(q.limit)} left)" for q in tight[:NAMED])
    more = f" and {len(tight) - NAMED} more" if len(tight) > NAMED else ""
    return (
        f"{clean(dataset)}: near their quotas are {named}{more}: copies count twice until they are"
        " in place, so that files of theirs, and what they write meanwhile, may find it exceeded"
    )


def held(run: Run, dataset: str) -> list[Quota]:
    """The quotas of users, groups and projects; none where they are not to be seen."""
    found = []
    for command in COMMANDS:
        argv = ["zfs", command, "-Hp", "-o", "type,name,used,quota", dataset]
        try:
            done = run(argv, DEADLINE)
        except (OSError, DeadlineError):
            continue
        rows = (line.split("\t") for line in done.stdout.splitlines())
        found += [
            Quota(f"{row[0].split()[-1].lower()} {clean(row[1])}", int(row[2]), int(row[3]))
            for row in rows
            if len(row) == 4 and row[0] and row[2].isdigit() and row[3].isdigit() and int(row[3])
        ]
    return found
