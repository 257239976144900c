"""What to know before a plan is carried out: nothing to gain, shared blocks, tight quotas.

A copy counts twice until its original is gone: in quotas of datasets, and, from ``zfs userspace``
and its like (zfs-userspace(8)), in those of users, groups and projects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from zconsole.rebalance.planning import engine_choice, forecast, new_sizes
from zconsole.rebalance.planning.facts import DEADLINE, Dataset, PoolFacts, Run
from zconsole.rebalance.planning.plan_document import PlanDocument
from zconsole.rebalance.planning.plan_model import DirectoryPlan
from zconsole.rebalance.planning.settings import Limits
from zconsole.rebalance.planning.survey import Taken
from zconsole.rebalance.planning.zdb import Listed
from zconsole.system.printable import clean
from zconsole.system.process import DeadlineError
from zconsole.units import size

COMMANDS = ("userspace", "groupspace", "projectspace")
NAMED = 3
"""Holders that are named; the others are counted."""
NO_GAIN = 0.005
NOT_ROOT = "not root: files of others fail, trusted attributes are not seen and get lost"


def in_vain(
    aim: str,
    plans: Sequence[DirectoryPlan],
    pool: PoolFacts,
    listed: Sequence[Mapping[int, Listed]],
) -> tuple[str | None, list[str]]:
    """Why a job is refused, or what to note, where the files looked at have nothing to gain."""
    if aim == "width":
        return _width(plans, pool, listed)
    if aim == "recordsize":
        return _record(plans)
    return None, []


def _width(
    plans: Sequence[DirectoryPlan], pool: PoolFacts, listed: Sequence[Mapping[int, Listed]]
) -> tuple[str | None, list[str]]:
    if not any(layout.parity for _, layout in new_sizes.layouts_of(pool)):
        return "no raidz vdev: there is no width to gain", []
    shares = [new_sizes.narrowed(files, pool) for files in listed]
    if any(share is None or share < 1 - NO_GAIN for share in shares):
        return None, []
    return _said(sum(map(len, listed)), plans, "as wide as it would be written now")


def _record(plans: Sequence[DirectoryPlan]) -> tuple[str | None, list[str]]:
    files = [(file, plan) for plan in plans for file in plan.found.sample.files if file.size]
    if not files or not all(_has_record(file, plan) for file, plan in files):
        return None, []
    return _said(len(files), plans, "of the recordsize it would get")


def _has_record(file: Taken, plan: DirectoryPlan) -> bool:
    dataset = plan.place.dataset
    record = (dataset.number("recordsize") if dataset else None) or new_sizes.USUAL_RECORD
    return file.block == record if file.size > record else file.size <= file.block


def _said(looked: int, plans: Sequence[DirectoryPlan], words: str) -> tuple[str | None, list[str]]:
    """Refused only where no file is left that might have something to gain."""
    if looked >= sum(plan.found.files for plan in plans):
        return f"every file is {words}", []
    return None, [f"each of {looked} files looked at is {words}"]


def of_shared_blocks(pool: PoolFacts | None, plans: Sequence[DirectoryPlan]) -> Iterator[str]:
    """What to know of deduplicated blocks of before, where dedup is off by now."""
    text = pool.properties.get("dedupratio", "").rstrip("x") if pool else ""
    off = any(plan.place.dataset and not plan.place.dataset.is_on("dedup") for plan in plans)
    try:
        ratio = float(text)
    except ValueError:
        return
    if off and ratio > 1:
        yield (
            f"the pool has deduplicated blocks ({ratio:.2f}x), and dedup is off now: what moves of"
            " them takes space of its own, and they stay as long as others refer to them"
        )


class Quota(NamedTuple):
    """What somebody may use of a dataset, and uses; bytes."""

    holder: str
    used: int
    limit: int

    @property
    def left(self) -> int:
        """Bytes that may still be written."""
        return max(0, self.limit - self.used)


def of_quotas(run: Run, plans: Sequence[DirectoryPlan]) -> Iterator[str]:
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


def of_plan(
    plan: PlanDocument, plans: Sequence[DirectoryPlan], pool: PoolFacts | None, limits: Limits
) -> list[str]:
    """What to know of the pool and of snapshots."""
    notes = []
    if pool is None and limits.until_spread is not None:
        notes.append("no pool: there is no spread to stop at")
    if pool is not None:
        if len(pool.spaces) == 1:
            notes.append("one vdev: there is nothing to balance")
        if pool.scanning:
            notes.append(f"a {pool.scanning} is running: the job waits for its end")
        if pool.health != "ONLINE":
            notes.append(f"the pool is {pool.health}: the job waits until it is ONLINE")
        notes += forecast.special_notes(plan.special or ())
        if pool.checkpoint:
            notes.append("a checkpoint keeps every block that is freed")
        if limits.until_spread is None and plan.bytes_to_target and _overshoots(plan):
            notes.append(
                f"moving everything goes too far: --until-spread {plan.target_spread:g} would stop"
                f" after {plan.bytes_to_target} bytes"
            )
    if any(engine_choice.hides_acls(each.choice, each.place.dataset) for each in plans):
        notes.append("acltype=off: ACLs of before, or of another system, are not seen and get lost")
    held = sum(s.holds > 0 for d in plans if d.place.dataset for s in d.place.dataset.snapshots)
    if held:
        notes.append(f"{held} snapshots are held")
    return notes


def _overshoots(plan: PlanDocument) -> bool:
    """Whether the emptiest vdev of today would be the fullest."""
    vdevs = plan.vdevs or ()
    emptiest = min(vdevs, key=lambda vdev: vdev.fill_before)
    least = min(vdev.fill_after for vdev in vdevs)
    return emptiest.fill_after - least > (plan.target_spread or 0.0)
