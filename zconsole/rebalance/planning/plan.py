"""Making the plan of a job: measures, predicts, and refuses a job that can't work."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

from zconsole.errors import NotFoundError, UsageError
from zconsole.rebalance.engine import namespaces
from zconsole.rebalance.engine.directories import open_path
from zconsole.rebalance.engine.file_locks import FilesInUse, Users
from zconsole.rebalance.engine.leases import NO_LEASES, unleased
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.planning import (
    engine_choice,
    exports,
    facts,
    forecast,
    plan_notes,
    survey,
)
from zconsole.rebalance.planning.facts import Dataset, FactsReader, JobDirectory, PoolFacts
from zconsole.rebalance.planning.forecast import (
    BATCH_BYTES,
    TOO_LARGE,
    DirectoryPlan,
    RebalancePlan,
)
from zconsole.rebalance.planning.plan_document import PINS, PlanDocument
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.rebalance.planning.survey import Ages, Sink, Survey
from zconsole.rebalance.planning.walk import own_files
from zconsole.system.mounts import is_inside, mount_at
from zconsole.units import percent, size

SEVERAL_POOLS = "the directories are not all on one pool: run a job for each"
LEAST_EVENED = 0.0005
"""Least improvement of the pool's spread that justifies a job if old blocks stay pinned."""


def locate(
    directories: Sequence[str], reader: FactsReader, snapshots: bool = True
) -> list[JobDirectory]:
    """Look up the filesystem of each directory, and its snapshots if wanted (there may be many).

    Raises NotFoundError, UsageError for a directory inside another, UnavailableError.
    """
    found: list[JobDirectory] = []
    for directory in directories:
        try:
            path = Path(directory).resolve(strict=True)
            if not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            root = os.fsencode(path)
            mount = facts.mount_of(mount_at(root)) or facts.unlisted_mount(root)
        except OSError as error:
            raise NotFoundError(f"{directory}: {error.strerror}") from error
        kind, source, point = map(os.fsdecode, (mount.kind, mount.source, mount.point))
        dataset = reader.dataset(source, snapshots) if kind == "zfs" and source else None
        options = os.fsdecode(mount.options)
        found.append(JobDirectory(root, kind, source, dataset, point, mount.read_only, options))
    for one, other in permutations(found, 2):
        if is_inside(one.root, other.root):
            raise UsageError(f"{one.path} is inside {other.path}")
    return found


def make(
    reader: FactsReader,
    found: Sequence[JobDirectory],
    settings: Settings,
    sink: Sink | None = None,
    journal: Path | None = None,
) -> RebalancePlan:
    """Walk the directories and make the plan; every portion walked also goes to ``sink``.

    The ``journal`` it is made for is not moved, nor is anything of zconsole's own. Raises
    NotFoundError for a directory that is gone, UnavailableError, and what ``sink`` raises.
    """
    # Read one pool only: if the directories are on several, the plan is refused anyway.
    names = sorted({place.dataset.pool for place in found if place.dataset})
    pool = reader.pool(names[0]) if names else None
    if pool is not None and os.geteuid() == 0:
        pool = replace(pool, added=reader.added(pool.name))
    surveys = [_survey_of(place, pool, settings) for place in found]
    try:
        split = survey.survey(surveys, sink, own_files(journal))
    except OSError as error:
        raise NotFoundError(f"{error.filename or ''}: {error.strerror}") from error
    in_use, shared = Users().look(), exports.look(reader.run)
    plans = [
        _directory_plan(reader, place, pool, settings, measured, in_use, shared)
        for place, measured in zip(found, surveys, strict=True)
    ]
    for root, linked, held in split:
        if plans[root].choice.engine == "copy":  # a copy would lose links to names elsewhere
            plans[root].skip_files("hard links outside the set", linked, held)
    forecast.list_sampled_blocks(reader, plans, pool)
    for each in plans:
        each.differs = tuple(plan_notes.differing(settings.aim, each, pool))
    made = judged(plans, pool, settings)
    refused, vain = made.document.refused, list[str]()
    if refused is None and settings.fill_new and os.geteuid() != 0:
        refused = "not root: allocating can't be set"
    if pool is not None and refused is None:
        refused, vain = plan_notes.nothing_to_gain(settings.aim, plans, pool)
    notes = (
        *made.document.notes,
        *plan_notes.of_rights(),
        *plan_notes.of_quotas(reader, plans),
        *plan_notes.of_journal(reader, journal, plans),
        *plan_notes.of_shared_blocks(pool, plans),
        *plan_notes.of_other_users(in_use, plans),
        *vain,
    )
    return made._replace(document=replace(made.document, notes=notes, refused=refused))


def judged(
    plans: Sequence[DirectoryPlan], pool: PoolFacts | None, settings: Settings
) -> RebalancePlan:
    """Derive the prediction, notes and refusal from measurements, without asking ZFS again."""
    pool = pool if pool and pool.spaces else None
    made = forecast.predicted(plans, pool, settings)
    notes = plan_notes.of_plan(made.document, plans, pool, settings)
    refused = _refusal(made.document, plans, settings)
    return made._replace(document=replace(made.document, notes=tuple(notes), refused=refused))


def _survey_of(place: JobDirectory, pool: PoolFacts | None, settings: Settings) -> Survey:
    """Return the survey of a directory, to be filled by a walk."""
    ages = _ages(place.dataset, pool.added if pool else None)
    room, floor = forecast.room_in(place.root, pool, settings.limits, settings.fill_new)
    return Survey(place.root, ages, room, forecast.special_limit(place.dataset), floor)


def _ages(dataset: Dataset | None, added: int | None) -> Ages:
    if dataset is None:
        return Ages()
    snapshots = [snapshot.creation for snapshot in dataset.snapshots]
    cloned = [snapshot.creation for snapshot in dataset.snapshots if snapshot.clones]
    if dataset.is_on("origin"):
        cloned.append(dataset.number("creation") or 0)
    snapshot, bookmark = max(snapshots, default=None), dataset.bookmarked
    if snapshot is not None and bookmark is not None and bookmark <= snapshot:
        bookmark = None
    # Creation times are in seconds: a file written within that second counts as in the snapshot.
    return Ages(
        snapshot=snapshot + 1 if snapshot is not None else None,
        clone=max(cloned) + 1 if cloned else None,
        addition=added,
        bookmark=bookmark + 1 if bookmark is not None else None,
    )


def _directory_plan(
    reader: FactsReader,
    place: JobDirectory,
    pool: PoolFacts | None,
    settings: Settings,
    found: Survey,
    files: FilesInUse,
    shared: Sequence[exports.Shared],
) -> DirectoryPlan:
    exported = exports.why_exported(place.point, shared)
    version, in_use = reader.version(), _overlay(files, place.root)
    # Without leases, writes by processes of this machine go unnoticed, too.
    unseen = unleased(version if place.dataset else ()) if found.sampled[NO_LEASES] else exported
    chosen = engine_choice.choose(settings, place, version, unseen, in_use, namespaces.is_nested())
    chosen = engine_choice.checked(chosen, settings.rewrite_options, version, pool)
    plan = DirectoryPlan(place, found, chosen, found.files, found.bytes)
    plan.shared = bool(engine_choice.why_shared(place.dataset, exported))
    if chosen.engine == "copy":
        plan.skip_too_large()
    plan.pinned, plan.held_most = _pinned(place.dataset, pool, found)
    plan.pinned_room = _pinned_room(reader, place.dataset, pool, settings, found.room)
    plan.spare_blocks(settings.rewrite_options)
    plan.in_flight = min(BATCH_BYTES, found.allocated)
    if chosen.engine == "copy":
        plan.in_flight = max(plan.in_flight, found.largest)
    return plan


def _overlay(files: FilesInUse, root: bytes) -> str | None:
    """Name a user of a mounted overlay that includes this directory; None if there is none."""
    try:
        fd = open_path(Sys(), root)
    except OSError:
        return None  # the directory has been moved: the job will find no file in it
    try:
        return files.overlay(fd)
    finally:
        Sys.close(fd)


def _pinned(
    dataset: Dataset | None, pool: PoolFacts | None, found: Survey
) -> tuple[dict[str, int | None], int]:
    """Estimate bytes that stay allocated, by cause, and the most that snapshots may hold."""
    if dataset is None or pool is None:
        return dict.fromkeys(PINS), 0
    # A snapshot can hold at most the data not written since; ``written`` counts from the newest
    # snapshot or a clone's origin (zfsprops(7)).
    referenced, written = dataset.number("referenced"), dataset.number("written")
    most = found.allocated
    if referenced is not None and written is not None:
        most = min(most, max(0, referenced - written))
    pinned: dict[str, int | None] = {
        "snapshots": min(most, found.snapshot_allocated),
        "clones": min(most, found.clone_allocated),
        "checkpoint": found.allocated if pool.condition.checkpoint else 0,
        "dedup": found.allocated if dataset.is_on("dedup") else 0,
        "block_clones": min(found.allocated, pool.number("bclonesaved")),
    }
    return pinned, most if dataset.snapshots or dataset.is_on("origin") else 0


def _pinned_room(
    reader: FactsReader,
    dataset: Dataset | None,
    pool: PoolFacts | None,
    settings: Settings,
    room: int,
) -> int | None:
    """Free bytes for old blocks that stay; None if they share the space for files."""
    if dataset is None or pool is None or not dataset.number("refquota"):
        return None
    above = forecast.above_floor(pool, settings.limits, settings.fill_new)
    return max(room, round(min(above, reader.room_of_snapshots(dataset))))


def _refusal(plan: PlanDocument, plans: Sequence[DirectoryPlan], settings: Settings) -> str | None:
    if len({each.place.dataset.pool if each.place.dataset else None for each in plans}) > 1:
        return SEVERAL_POOLS
    for each in plans:
        if each.choice.engine is None:
            return f"{each.place.path}: {each.choice.why}"
    if "S" in settings.rewrite_options and plan.files and not plan.bytes:
        return "the newest snapshots have every block, and -S leaves those alone"
    return (
        _fill_new_refusal(plan, settings)
        or _space_refusal(plan, plans, settings.limits)
        or _aim_refusal(plan, plans, settings)
    )


def _fill_new_refusal(plan: PlanDocument, settings: Settings) -> str | None:
    """Return why full vdevs can't be kept from new writes; None if they can, or need not."""
    if not settings.fill_new:
        return None
    why = "not on ZFS" if plan.fill_new is None else plan.fill_new.refused
    if why is None and settings.limits.until_spread is None and plan.bytes_to_target is not None:
        why = "they would end emptier than the others: set a spread to stop at"
    return why and f"full vdevs can't be kept from new writes: {why}"


def _space_refusal(
    plan: PlanDocument, plans: Sequence[DirectoryPlan], limits: Limits
) -> str | None:
    goal, free = plan.bytes_within(limits), min(each.found.room for each in plans)
    stored = max(1.0, *(each.stored for each in plans))
    grows = sum(each.growth(goal) for each in plans)
    lasting = min(sum(each.pinned_least for each in plans), round(goal * stored)) + grows
    in_flight = max(each.in_flight for each in plans)
    # Copies in flight alone are no reason to refuse: portions adapt to the free space. What only
    # snapshots hold does not count in a refquota, which bounds ``free``; files that grow do.
    for lasts, room in ((lasting, plan.available_bytes), (grows, free)):
        if lasts and lasts + in_flight > room:
            needed = size(lasts + in_flight)
            return f"needs {needed}, with only {size(room)} usable beyond what is kept free"
    if free <= 0:
        return "no free space beyond what is kept free"
    too_large = any(each.found.skipped[TOO_LARGE] for each in plans)
    if too_large and not plan.files:
        return f"every file is too large for the {size(free)} usable beyond what is kept free"
    return None


def _aim_refusal(
    plan: PlanDocument, plans: Sequence[DirectoryPlan], settings: Settings
) -> str | None:
    before, goal = plan.spread_before, settings.limits.until_spread
    # Refuse only what neither prediction makes worthwhile.
    afters = [each for each in (plan.spread_after, plan.busy_spread_after) if each is not None]
    if before is None or not afters or settings.aim != "balance":
        return None
    after = min(afters)
    change = f"{percent(before, 1)} now, {percent(after, 1)} then"
    if goal is not None and plan.bytes_to_target is None and plan.busy_bytes_to_target is None:
        volumes = plan.volumes.least_spread if plan.volumes else 0.0
        if volumes > goal:
            return (
                f"a spread of {percent(goal, 1)} is out of reach: volumes keep it at"
                f" {percent(volumes, 1)} or more. Choose a larger spread"
            )
        return (
            f"a spread of {percent(goal, 1)} is out of reach for these directories: {change}."
            " Choose more directories or a larger spread"
        )
    pinned = any(each.pinned_least for each in plans)
    if pinned and len(plan.vdevs or ()) > 1 and after > before - LEAST_EVENED:
        return f"the spread would not improve ({change}): old blocks are pinned"
    return None
