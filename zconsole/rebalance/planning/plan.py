"""The plan of a job: measured, predicted, and refused where it cannot work."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace

from zconsole.errors import NotFoundError, UsageError
from zconsole.pool import allocator
from zconsole.rebalance.engine.directories import open_path
from zconsole.rebalance.engine.file_locks import FilesInUse, Users
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.planning import (
    company,
    engine_choice,
    exports,
    facts,
    forecast,
    new_sizes,
    plan_notes,
    survey,
    walk,
    zdb,
)
from zconsole.rebalance.planning.engine_choice import EngineRequest
from zconsole.rebalance.planning.facts import Dataset, FactsReader, Mount, PoolFacts
from zconsole.rebalance.planning.plan_model import (
    BATCH_BYTES,
    FLOOR,
    TARGET,
    DirectoryPlan,
    Goal,
    JobDirectory,
    RebalancePlan,
)
from zconsole.rebalance.planning.survey import Ages, Sink, Survey
from zconsole.rebalance.planning.zdb import Listed
from zconsole.system.mounts import mount_at

NO_GAIN = 0.0005


def places(
    directories: Sequence[str], reader: FactsReader, snapshots: bool = True
) -> list[JobDirectory]:
    """The directories with their filesystems, and the snapshots where wanted (there may be many).

    Raises NotFoundError, UsageError for one inside another, UnavailableError.
    """
    found: list[JobDirectory] = []
    for directory in directories:
        try:
            root = walk.resolve(directory)
            mount = facts.mount_of(mount_at(root))
        except OSError as error:
            raise NotFoundError(f"{directory}: {error.strerror}") from error
        mount = mount or Mount("unknown", "", "/")
        dataset = reader.dataset(mount.source, snapshots) if mount.kind == "zfs" else None
        found.append(JobDirectory(root, mount, dataset))
    _refuse_nested([place.root for place in found])
    return found


def _refuse_nested(roots: Sequence[bytes]) -> None:
    for root in roots:
        for other in roots:
            inside = root != other and root.startswith(other.rstrip(b"/") + b"/")
            if inside or roots.count(root) > 1:
                raise UsageError(f"{os.fsdecode(root)} is inside {os.fsdecode(other)}")


def make(
    sys: Sys,
    reader: FactsReader,
    found: Sequence[JobDirectory],
    wish: EngineRequest,
    goal: Goal,
    sink: Sink | None = None,
) -> RebalancePlan:
    """Walk, measure and predict. Every portion walked also goes to ``sink``."""
    pools = sorted({place.dataset.pool for place in found if place.dataset})
    pool = reader.pool(pools[0]) if pools else None
    if pool is not None and os.geteuid() == 0:
        pool = replace(pool, added=reader.added(pool.name))
    surveys = [
        survey.Survey(
            place.root,
            _ages(place.dataset, pool.added if pool else None),
            _available(place.root, pool, goal),
            forecast.special_limit(place.dataset),
        )
        for place in found
    ]
    try:
        split = survey.survey(sys, surveys, sink)
    except OSError as error:
        raise NotFoundError(f"{error.filename or ''}: {error.strerror}") from error
    look = Users().look()
    plans = [
        _directory_plan(sys, reader, place, pool, wish, measured, look)
        for place, measured in zip(found, surveys, strict=True)
    ]
    _leave_out_split(plans, split)
    told = forecast.told(reader, plans)
    if pool is not None:
        listed = [file for files in told for file in files.values()]
        pool = replace(pool, sector=pool.sector or zdb.sector(listed))
        for each, files in zip(plans, told, strict=True):
            each.sizes = new_sizes.foretell(sys, each, pool, files)
    plan = _predicted(plans, pool, goal, told)
    plan.notes += [*_notes(plan, goal), *plan_notes.of_quotas(reader.run, plans)]
    plan.notes += [*plan_notes.of_shared_blocks(pool, plans), *company.notes(look, plans)]
    plan.refused = _refusal(plan, pools, wish, goal)
    if pool is not None and plan.refused is None:
        plan.refused, notes = plan_notes.in_vain(wish.aim, plans, pool, told)
        plan.notes += notes
    return plan


def _ages(dataset: Dataset | None, added: int | None) -> Ages:
    if dataset is None:
        return Ages()
    snapshots = [snapshot.creation for snapshot in dataset.snapshots]
    cloned = [snapshot.creation for snapshot in dataset.snapshots if snapshot.clones]
    if dataset.is_on("origin"):
        cloned.append(dataset.number("creation") or 0)
    # Seconds: what was written within the snapshot's own second counts as held by it.
    return Ages(
        snapshot=max(snapshots) + 1 if snapshots else None,
        clone=max(cloned) + 1 if cloned else None,
        addition=added,
    )


def _directory_plan(
    sys: Sys,
    reader: FactsReader,
    place: JobDirectory,
    pool: PoolFacts | None,
    wish: EngineRequest,
    found: Survey,
    look: FilesInUse,
) -> DirectoryPlan:
    able = can_rewrite(sys, place.root) if place.dataset else False
    exported = exports.why_exported(place.mount.point, reader.run)
    version, in_use = reader.version(), _overlay(sys, look, place.root)
    chosen = engine_choice.choose(wish, place.mount, place.dataset, version, able, exported, in_use)
    plan = DirectoryPlan(place, found, chosen, found.files, found.bytes)
    plan.shared = bool(engine_choice.why_shared(place.dataset, exported))
    if chosen.engine == "copy":
        _leave_out_too_large(plan)
    plan.pinned = _pinned(place.dataset, pool, found)
    plan.in_flight = min(BATCH_BYTES, found.allocated)
    if chosen.engine == "copy":
        plan.in_flight = max(plan.in_flight, found.largest)
    return plan


def _overlay(sys: Sys, look: FilesInUse, root: bytes) -> str | None:
    """Who has an overlay mounted that a directory has part in; None where nobody does."""
    try:
        fd = open_path(sys, root)
    except OSError:
        return None  # it has moved, and the job finds no file in it
    try:
        return look.overlay(fd)
    finally:
        sys.close(fd)


def _leave_out_too_large(plan: DirectoryPlan) -> None:
    """A copy needs room for a whole file: larger ones are skipped, and foretell nothing."""
    large = plan.found.too_large
    if large.files:
        plan.found.skipped["too large for the free space"] += large.files
    plan.files -= large.files
    plan.bytes -= large.bytes
    plan.found.allocated -= large.allocated
    plan.found.old_allocated -= large.old_allocated


def _pinned(
    dataset: Dataset | None, pool: PoolFacts | None, found: Survey
) -> dict[str, int | None]:
    if dataset is None or pool is None:
        return dict.fromkeys(("snapshots", "clones", "checkpoint", "dedup", "block_clones"))
    return {
        "snapshots": min(found.allocated, found.snapshot_allocated),
        "clones": min(found.allocated, found.clone_allocated),
        "checkpoint": found.allocated if pool.checkpoint else 0,
        "dedup": found.allocated if dataset.is_on("dedup") else 0,
        "block_clones": min(found.allocated, pool.number("bclonesaved")),
    }


def _leave_out_split(plans: Sequence[DirectoryPlan], split: Sequence[survey.Split]) -> None:
    """A copy cannot keep hard links to names outside the set: those files are skipped."""
    for root, names, size in split:
        plan = plans[root]
        if plan.choice.engine == "copy":
            plan.found.skipped["hard links outside the set"] += names
            plan.files -= names
            plan.bytes -= size


def can_rewrite(sys: Sys, root: bytes) -> bool | None:
    """Whether the kernel rewrites files here; None when there was no file to ask with.

    A range behind the end of a file is nothing to do, so asking changes nothing (zfs_rewrite).
    """
    for portion in walk.Walk(sys, [root]):
        for name, _ in portion.files[:16]:
            try:
                flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                fd = sys.open(name, flags, dir_fd=portion.fd)
            except OSError:
                continue
            try:
                if stat.S_ISREG(sys.fstat(fd).st_mode):
                    sys.rewrite(fd, 1 << 62, 1)
            except OSError:
                return False
            else:
                return True
            finally:
                sys.close(fd)
    return None


def _predicted(
    plans: list[DirectoryPlan],
    pool: PoolFacts | None,
    goal: Goal,
    told: Sequence[Mapping[int, Listed]],
) -> RebalancePlan:
    available = min(_available(plan.place.root, pool, goal) for plan in plans)
    target = goal.until_spread if goal.until_spread is not None else TARGET
    if pool is None or not pool.spaces:
        return RebalancePlan(plans, None, [], None, target, available, "size")
    source, estimate = forecast.source(plans, pool, told)
    plan = RebalancePlan(plans, pool, [], None, target, available, estimate)
    allocated = sum(plan.found.allocated for plan in plans)
    pinned = sum(plan.pinned_most for plan in plans) / allocated if allocated else 0.0
    size = sum(plan.bytes for plan in plans)
    by_byte = allocated / size * pool.raw_factor if size else pool.raw_factor
    limit = by_byte * min(size, goal.max_bytes or size)
    raw = allocator.raw_to_target(pool.spaces, target, limit, source, pinned, plan.growth)
    reaches = goal.until_spread is not None and raw is not None
    moved = raw if reaches and raw is not None else limit
    plan.after = allocator.rewritten(pool.spaces, moved, source, pinned, plan.growth)
    plan.bytes_to_target = None if raw is None or not by_byte else round(raw / by_byte)
    plan.special = forecast.special(plans, pool)
    return plan


def _available(root: bytes, pool: PoolFacts | None, goal: Goal) -> int:
    status = os.statvfs(root)
    free = status.f_bavail * status.f_frsize
    share = goal.min_free if goal.min_free is not None else FLOOR if pool else 0.0
    if pool is None:
        return max(0, free - round(share * status.f_blocks * status.f_frsize))
    above = (pool.number("free") - share * pool.number("size")) / pool.raw_factor
    return max(0, round(min(free, above)))


def floors(plan: RebalancePlan) -> dict[str, tuple[int, float]]:
    """By root: free bytes that are not for the job, and what a share to keep free is a share of."""
    pool, found = plan.pool, {}
    for directory in plan.directories:
        status = os.statvfs(directory.place.root)
        free, room = status.f_bavail * status.f_frsize, directory.found.room
        whole = pool.number("size") / pool.raw_factor if pool else status.f_blocks * status.f_frsize
        found[os.fsdecode(directory.place.root)] = (max(0, free - (room or 0)), whole)
    return found


def _notes(plan: RebalancePlan, goal: Goal) -> list[str]:
    notes = []
    pool = plan.pool
    if pool is None and goal.until_spread is not None:
        notes.append("no pool: there is no spread to stop at")
    if pool is not None:
        if len(pool.spaces) == 1:
            notes.append("one vdev: there is nothing to balance")
        if pool.scanning:
            notes.append(f"a {pool.scanning} is running: the job waits for its end")
        if pool.health != "ONLINE":
            notes.append(f"the pool is {pool.health}: the job waits until it is ONLINE")
        notes += forecast.special_notes(pool, plan.special)
        if pool.checkpoint:
            notes.append("a checkpoint keeps every block that is freed")
        if goal.until_spread is None and plan.bytes_to_target and _overshoots(plan):
            notes.append(
                f"moving everything goes too far: --until-spread {plan.target:g} would stop after"
                f" {plan.bytes_to_target} bytes"
            )
    if any(engine_choice.hides_acls(d.choice, d.place.dataset) for d in plan.directories):
        notes.append("acltype=off: ACLs of before, or of another system, are not seen and get lost")
    held = sum(
        s.holds > 0 for d in plan.directories if d.place.dataset for s in d.place.dataset.snapshots
    )
    if held:
        notes.append(f"{held} snapshots are held")
    if os.geteuid() != 0:
        notes.append("not root: files of others fail, trusted attributes are not seen and get lost")
    return notes


def _overshoots(plan: RebalancePlan) -> bool:
    """Whether the emptiest vdev of today would be the fullest."""
    before = plan.pool.spaces if plan.pool else ()
    emptiest = min(range(len(before)), key=lambda index: before[index].fill)
    return plan.after[emptiest].fill - min(s.fill for s in plan.after) > plan.target


def _refusal(
    plan: RebalancePlan, pools: Sequence[str], wish: EngineRequest, goal: Goal
) -> str | None:
    if len(pools) > 1 or (pools and any(d.place.dataset is None for d in plan.directories)):
        return "the directories are not all on one pool: run a job for each"
    for directory in plan.directories:
        if directory.choice.engine is None:
            return f"{os.fsdecode(directory.place.root)}: {directory.choice.why}"
    lasting = sum(directory.lasting for directory in plan.directories)
    needed = lasting + max(directory.in_flight for directory in plan.directories)
    if needed > plan.available and lasting:
        return f"needs {needed} bytes and only {plan.available} are free above the floor"
    if plan.available <= 0:
        return "no free space above the floor"
    too_large = any(d.found.skipped["too large for the free space"] for d in plan.directories)
    if too_large and not any(directory.files for directory in plan.directories):
        return f"every file is too large for the {plan.available} bytes free above the floor"
    return _aim_refusal(plan, wish, goal)


def _aim_refusal(plan: RebalancePlan, wish: EngineRequest, goal: Goal) -> str | None:
    if plan.pool is None or wish.aim != "balance":
        return None
    before, after = allocator.spread(plan.pool.spaces), allocator.spread(plan.after)
    if goal.until_spread is not None and plan.bytes_to_target is None:
        return f"a spread of {goal.until_spread:g} cannot be reached: {before:.3f} to {after:.3f}"
    pinned = any(d.pinned_most for d in plan.directories)
    if pinned and len(plan.after) > 1 and after > before - NO_GAIN:
        return f"the spread would not improve ({before:.3f} to {after:.3f}): old blocks are pinned"
    return None
