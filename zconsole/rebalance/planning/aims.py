"""Whether there is anything to gain for an aim other than balance, by a plan's sample of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zconsole.rebalance.planning import new_sizes
from zconsole.rebalance.planning.facts import PoolFacts
from zconsole.rebalance.planning.plan_model import DirectoryPlan
from zconsole.rebalance.planning.reservoir import Taken
from zconsole.rebalance.planning.zdb import Listed

NO_GAIN = 0.005


def in_vain(
    aim: str, plans: Sequence[DirectoryPlan], pool: PoolFacts, told: Sequence[Mapping[int, Listed]]
) -> tuple[str | None, list[str]]:
    """Why a job is refused, or what to note, where the files looked at have nothing to gain."""
    if aim == "width":
        return _width(plans, pool, told)
    if aim == "recordsize":
        return _record(plans)
    return None, []


def _width(
    plans: Sequence[DirectoryPlan], pool: PoolFacts, told: Sequence[Mapping[int, Listed]]
) -> tuple[str | None, list[str]]:
    if not any(layout.parity for _, layout in new_sizes.layouts_of(pool)):
        return "no raidz vdev: there is no width to gain", []
    shares = [new_sizes.narrowed(files, pool) for files in told]
    if any(share is None or share < 1 - NO_GAIN for share in shares):
        return None, []
    return _said(sum(map(len, told)), plans, "as wide as it would be written now")


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
