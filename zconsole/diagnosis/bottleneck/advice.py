"""Suggestions for each limit: a command or tunable, depending on the OpenZFS version."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from zconsole.diagnosis.bottleneck.evidence import NO_DISK, Disk, Evidence
from zconsole.diagnosis.bottleneck.finding import LARGE_RAISE, NOTHING_TO_DO, Suggestion
from zconsole.pool.hazards import hazards
from zconsole.pool.model import Pool, Vdev
from zconsole.pool.redundancy import may_fail, redundancy
from zconsole.tunables.catalog import BY_NAME

UNSORTED = Suggestion(
    "this version reads blocks in the order they were written; OpenZFS 0.8 sorts them"
)
FIRST_SORTED = (0, 8)
"""Release from which scans sort blocks before issuing, and have no delays (dsl_scan.c)."""

HOLD = Suggestion("reduce the load, or {act}: scans then go as fast as applications allow", "hold")
"""Suggestion of the autopilot, for when no single value helps."""

FREEZE = "zfs_scan_suspend_progress"
"""Tunable that stops the progress of scans and rebuilds."""


def says(words: str, act: str = "", tunable: str = "") -> Callable[[Evidence, Disk], Suggestion]:
    """Return a function that suggests this text; ``{disk}`` is the name of the disk at fault."""
    return lambda _, disk: Suggestion(words.replace("{disk}", disk.name), act, tunable)


class Throttle(NamedTuple):
    """A tunable that holds a scan back, its value, and the suggestion to release it."""

    name: str
    value: int
    release: Suggestion


def lowered_tunable(seen: Evidence) -> Throttle | None:
    """Return a tunable that holds the scan back, well below its default; None if none does."""
    if seen.version and seen.version < FIRST_SORTED:
        # Before 0.8 a scan waits this many ticks before each read while others do I/O.
        name = "zfs_scrub_delay" if seen.scan.function == "scrub" else "zfs_resilver_delay"
        value = seen.tunables.get(name, 4 if name == "zfs_scrub_delay" else 2)
        told = f"{{act}} so that the scan stops waiting {value} ticks before each read"
        return Throttle(name, value, Suggestion(told, "change", name, 0)) if value else None
    for name in _candidates(seen):
        now, default = seen.tunables.get(name), BY_NAME[name].default(seen.version)
        if now is not None and default is not None and now * LARGE_RAISE <= default:
            return Throttle(name, now, Suggestion("{act}", "release", name, default))
    return None


def throttle(seen: Evidence, _: Disk = NO_DISK) -> Suggestion:
    """Suggest, for idle disks, to release a throttle or to raise the next untried tunable."""
    if (found := lowered_tunable(seen)) is not None:
        return found.release
    if seen.version and seen.version < FIRST_SORTED:
        return Suggestion("check zfs_scan_idle and zfs_top_maxinflight next")
    left = (_unless_tried(seen, Suggestion("{act}", "raise", name)) for name in _candidates(seen))
    return next((each for each in left if each.words), NOTHING_TO_DO)


def _unless_tried(seen: Evidence, wanted: Suggestion) -> Suggestion:
    """Return a suggestion to raise a tunable, or another one if it was raised already.

    There is none for a value that was tried and set back, that brought little, or whose effect
    could not be measured. A suggestion without a value stands for any higher value.
    """
    name = wanted.tunable
    step, now = seen.steps.get(name), seen.tunables.get(name)
    if step is None or now is None or step.worthwhile:
        return wanted
    if step.effect is None:
        return Suggestion("{act} shows in some minutes", "wait", name, step.after)
    is_measured = step.effect.gain is not None and not step.effect.doubt
    if now >= step.after and is_measured and not step.helped:
        why = "did not help" if step.clear else "had no clear effect"
        return Suggestion(f"{{act}} again: {step.after} {why}", "set", name, step.before)
    return NOTHING_TO_DO if wanted.value is None or wanted.value >= step.after else wanted


def _candidates(seen: Evidence) -> tuple[str, ...]:
    if seen.scan.function == "rebuild":
        return ("zfs_rebuild_vdev_limit", "zfs_vdev_rebuild_max_active", "zfs_rebuild_max_segment")
    kind = "scrub" if seen.scan.function == "scrub" else "resilver"
    writes = () if kind == "scrub" else ("zfs_vdev_async_write_min_active",)
    return (
        "zfs_vdev_scrub_max_active",
        "zfs_scan_vdev_limit",
        f"zfs_{kind}_min_time_ms",
        *writes,
    )


def _write_queue(seen: Evidence) -> str:
    """Return the tunable that says how many writes a disk being filled gets at once."""
    if seen.scan.function == "rebuild":
        return "zfs_vdev_rebuild_max_active"
    return "zfs_vdev_async_write_min_active"


def more_writes(seen: Evidence, _: Disk = NO_DISK) -> Suggestion:
    """Suggest more parallel requests to a disk being filled."""
    name = _write_queue(seen)
    value = seen.tunables.get(name)
    more = min(max(8, 4 * (value or 2)), _most(seen, name))
    if value is not None and more <= value:
        return NOTHING_TO_DO
    now = f" (now {value})" if value is not None else ""
    return _unless_tried(seen, Suggestion(f"{{act}}{now}", "set", name, more))


def _most(seen: Evidence, name: str) -> int:
    """Return the highest value of a tunable: a minimum above its maximum would be refused."""
    most = BY_NAME[name].high
    if name.endswith("_min_active"):
        most = seen.tunables.get(name.replace("_min_active", "_max_active"), most)
    return most


def slow_disk(seen: Evidence, disk: Disk) -> Suggestion:
    """Suggest a check of a slow source disk, and offline only if redundancy would remain.

    One that is being replaced needs no check.
    """
    top = seen.tops.get(disk.top)
    tops = () if top is None else (top,)
    whole = redundancy(Pool("", None, Vdev("", "root", children=tops), scans=(seen.scan,)))
    left = max((entry.left - 1 for _, entry in whole), default=0)
    when = "" if seen.scan.function == "scrub" else " after this resilver"
    groups = (vdev.children for top in tops for vdev in top.walk() if vdev.kind == "replacing")
    new = next((each[-1].name for each in groups if each and each[0].name == disk.name), None)
    told = f"check {disk.name}: errors, SMART, cable; replace it{when}"
    if new:
        told = f"wait: {new} replaces {disk.name}{when}"
    return Suggestion(f"{told}; or offline it (then {may_fail(left)})" if left > 0 else told)


def new_disk(seen: Evidence, disk: Disk) -> Suggestion:
    """Suggest something for a resilver that is limited by the new disk's writes."""
    small = disk.request is not None and disk.request < 128 * 1024
    # A disk that gets as many writes as are allowed may be faster with a longer queue to order.
    if small and disk.in_flight >= seen.tunables.get(_write_queue(seen), inf):
        longer = more_writes(seen)
        if longer.words:
            return longer
    if small and seen.version and seen.version < FIRST_SORTED:
        return UNSORTED
    top = seen.tops.get(disk.top)
    rebuilt = top is not None and top.kind.startswith(("mirror", "draid"))
    if small and rebuilt and not hazards("replace -s", seen.version):
        told = "small writes: next time use a sequential rebuild (replace -s): larger writes"
        return Suggestion(told)
    told = "nothing to tune: the disk is at its limit; check it if that is slow for its model"
    return Suggestion(told)


FEW_WRITES = 1e6
"""Bytes/s written to a scan's source disks up to which applications count as only reading."""


def foreground(seen: Evidence, _: Disk = NO_DISK) -> Suggestion:
    """Suggest more priority for a scan that yields to applications.

    In a txg, a scan ends early if there is much dirty data, or someone waits for a sync
    (scan_io_queue_check_suspend, dsl_scan.c); a rebuild ignores both. While others read, it gets
    its minimum of requests (vdev_queue_class_max_active, vdev_queue.c).
    """
    if seen.version and seen.version < FIRST_SORTED:
        return Suggestion(
            "set zfs_scrub_delay=0 or zfs_resilver_delay=0 to give the scan equal priority"
        )
    kind = seen.scan.function
    names = [f"zfs_vdev_{'rebuild' if kind == 'rebuild' else 'scrub'}_min_active"]
    if kind != "rebuild" and seen.foreground_writes > FEW_WRITES:
        names.insert(0, f"zfs_{'scrub' if kind == 'scrub' else 'resilver'}_min_time_ms")
    left = (_more_priority(seen, name) for name in names)
    return next((each for each in left if each.words), HOLD)


def _more_priority(seen: Evidence, name: str) -> Suggestion:
    """Suggest to double a tunable that gives the scan more priority, unless that was tried."""
    value = seen.tunables.get(name) or BY_NAME[name].default(seen.version)
    if value and 2 * value > _most(seen, name):
        return NOTHING_TO_DO
    to, now = (f" to {2 * value}", f"now {value}, ") if value else ("", "")
    told = f"reduce the load, or {{act}}{to} ({now}slows applications)"
    wanted = Suggestion(told, "increase", name, 2 * value if value else None)
    return _unless_tried(seen, wanted)


def memory(seen: Evidence, _: Disk = NO_DISK) -> Suggestion:
    """Suggest more memory for a scan that can't sort everything at once.

    The limit is a share of RAM, but no more than 5 % of the pool's data (dsl_scan_should_clear,
    module/zfs/dsl_scan.c).
    """
    name = "zfs_scan_mem_lim_fact"
    value = seen.tunables.get(name, 20)
    held = seen.scan.total_bytes
    if seen.memory and held and held / 20 <= seen.memory / max(1, value):
        return Suggestion("nothing to tune: sort memory is at its limit (5 % of pool data)")
    better = BY_NAME[name].presets["memory"]
    if value <= better:  # doubling its share again and again would end with all of the RAM
        return Suggestion(f"nothing more to tune: sort memory has 1/{value} of RAM already")
    told = f"{{act}} (1/{better} of RAM; now 1/{value})"
    return Suggestion(told, "set", name, better)


def reorder(seen: Evidence, _: Disk, blocks: str) -> Suggestion:
    """Suggest larger queues for a scan whose disks seek between reads of such ``blocks``."""
    if seen.version and seen.version < FIRST_SORTED:
        return UNSORTED
    if seen.scan.function == "rebuild":
        return NOTHING_TO_DO
    told = f"{{act}} so that disks reorder more of the {blocks}"
    return _unless_tried(seen, Suggestion(told, "increase", "zfs_vdev_scrub_max_active"))
