"""Directories of the simulated pools, and plans for them by the real one's arithmetic."""

from __future__ import annotations

from dataclasses import replace

from zconsole.pool import allocator
from zconsole.pool.allocator import Space
from zconsole.rebalance.backend import DirectoryView, Measured, PlanView, VdevFill
from zconsole.rebalance.planning.engine_choice import COPIES, Choice, choose
from zconsole.rebalance.planning.facts import Dataset, Mount
from zconsole.rebalance.planning.plan_model import FLOOR, TARGET
from zconsole.rebalance.planning.settings import Settings
from zconsole.sim.directories import SimulatedDirectory
from zconsole.sim.rewrite import scanning
from zconsole.sim.state import PoolState
from zconsole.sim.topology import top_name


def _factor(pool: PoolState) -> float:
    """Allocated bytes a byte of a file takes."""
    tops = pool.normal_tops()
    return sum(t.alloc for t in tops) / (sum(t.alloc / t.inflation for t in tops) or 1.0)


def _spaces(pool: PoolState) -> tuple[Space, ...]:
    """The normal-class vdevs as the prediction takes them."""
    even = pool.version >= "2.4"
    return tuple(
        Space(
            top_name(top, index),
            int(top.space),
            top.alloc,
            float((1 if even else top.groups) * top.allocating),
        )
        for index, top in enumerate(pool.tops)
        if top in pool.normal_tops()
    )


def children(pools: tuple[PoolState, ...], path: str) -> tuple[str, ...]:
    """Names of the directories in one, sorted."""
    inside = [d.path[len(path) + 1 :] for d in _everywhere(pools) if d.path.startswith(f"{path}/")]
    return tuple(sorted({name.split("/")[0] for name in inside}))


def measured(pools: tuple[PoolState, ...], path: str) -> Measured:
    """What a directory holds, with everything below it, in bytes of its files."""
    held = [
        (pool, d) for pool in pools for d in pool.directories if f"{d.path}/".startswith(f"{path}/")
    ]
    size = sum(d.size / _factor(pool) for pool, d in held)
    return Measured(path, round(size), sum(d.files for _, d in held))


def _everywhere(pools: tuple[PoolState, ...]) -> list[SimulatedDirectory]:
    return [directory for pool in pools for directory in pool.directories]


def chosen(pool: PoolState, settings: Settings) -> list[SimulatedDirectory]:
    """The directories a job is about, those below what it was given included."""
    return [
        directory
        for directory in pool.directories
        if any(f"{directory.path}/".startswith(f"{root}/") for root in settings.dirs)
    ]


def propose(pool: PoolState, settings: Settings) -> PlanView:
    """The plan of a job on a simulated pool, by the real one's arithmetic."""
    choice = _choice(pool, settings)
    parts = tuple(_part(pool, root, choice) for root in settings.dirs)
    spaces, factor = _spaces(pool), _factor(pool)
    whole = sum(part.bytes for part in parts)
    goal = settings.limits.until_spread
    limit = min(whole, settings.limits.max_bytes or whole) * factor
    raw = allocator.raw_to_target(spaces, TARGET if goal is None else goal, limit)
    moved = limit if goal is None or raw is None else raw
    pinned = _pinned(pool, settings)
    after = allocator.rewritten(spaces, moved, pinned=pinned)
    free = sum(space.free for space in spaces)
    floor = settings.limits.min_free if settings.limits.min_free is not None else FLOOR
    available = max(0, round((free - floor * sum(s.size for s in spaces)) / factor))
    made = PlanView(
        settings,
        parts,
        tuple(VdevFill(b.name, b.fill, a.fill) for b, a in zip(spaces, after, strict=True)),
        allocator.spread(spaces),
        allocator.spread(after),
        TARGET if goal is None else goal,
        None if raw is None else round(raw / factor),
        available,
        max((top.frag for top in pool.normal_tops()), default=None),
        factor,
        "all data alike",
        _notes(pool, choice),
    )
    return replace(made, refused=_refusal(made, choice, round(pinned * whole)))


def _choice(pool: PoolState, settings: Settings) -> Choice:
    version = tuple(int(part) for part in pool.version.split("."))
    mount = Mount("zfs", pool.name, f"/{pool.name}")
    return choose(settings.wish, mount, Dataset(pool.name, {}), version, None, exported="")


def _part(pool: PoolState, root: str, choice: Choice) -> DirectoryView:
    held = [d for d in pool.directories if f"{d.path}/".startswith(f"{root}/")]
    factor = _factor(pool)
    pinned = round(sum(d.size * d.pinned for d in held) / factor)
    size = round(sum(d.size for d in held) / factor)
    return DirectoryView(
        root,
        sum(d.files for d in held),
        size,
        choice.engine,
        choice.why,
        pinned={"snapshots": pinned, "clones": 0, "checkpoint": 0, "dedup": 0, "block_clones": 0},
        incremental=pinned,
        allocated=size,
        after=size,
        sizes_from="simulated: written as before",
        below=_below(pool, root),
    )


def _below(pool: PoolState, root: str) -> tuple[dict[str, object], ...]:
    """The directories in a root, those that hold most first."""
    names = children((pool,), root)
    sizes = [(measured((pool,), f"{root}/{name}").bytes or 0, name) for name in names]
    return tuple(
        {"name": name, "bytes": size, "old_bytes": None} for size, name in sorted(sizes)[::-1]
    )


def _pinned(pool: PoolState, settings: Settings) -> float:
    held = chosen(pool, settings)
    size = sum(directory.size for directory in held)
    return sum(d.size * d.pinned for d in held) / size if size else 0.0


def _notes(pool: PoolState, choice: Choice) -> tuple[str, ...]:
    notes = [COPIES] if choice.engine == "copy" else []
    if len(pool.normal_tops()) == 1:
        notes.append("one vdev: there is nothing to balance")
    if running := scanning(pool):
        notes.append(f"a {running} is running: the job waits for its end")
    return tuple(notes)


def _refusal(made: PlanView, choice: Choice, pinned: int) -> str | None:
    if choice.engine is None:
        return f"{made.settings.dirs[0]}: {choice.why}"
    if not made.files:
        return f"{made.settings.dirs[0]}: no files"
    if made.available is not None and pinned > made.available:
        return f"needs {pinned} bytes and only {made.available} are free above the floor"
    goal, before, after = made.settings.limits.until_spread, made.spread_before, made.spread_after
    if made.settings.aim == "balance" and goal is not None and made.bytes_to_target is None:
        return f"a spread of {goal:g} cannot be reached: {before:.3f} to {after:.3f}"
    return None
