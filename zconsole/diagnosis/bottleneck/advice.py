"""Suggestions for each limit: the command or tunable, for the running version."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from zconsole.diagnosis.bottleneck.evidence import NO_DISK, Disk, Evidence
from zconsole.diagnosis.bottleneck.finding import LARGE_RAISE, NOTHING_TO_DO, Suggestion
from zconsole.pool.hazards import hazards
from zconsole.pool.model import Vdev
from zconsole.pool.redundancy import may_fail, redundancy
from zconsole.tunables.catalog import BY_NAME

UNSORTED = Suggestion(
    "this version reads blocks in the order they were written; OpenZFS 0.8 sorts them"
)
FIRST_SORTED = (0, 8)
"""From this release scans sort what they issue and have no delays (dsl_scan.c)."""

HOLD = Suggestion("reduce the load, or {act}: scans then go as fast as applications allow", "hold")
"""The autopilot, which is left where one value brought nothing."""

FREEZE = "zfs_scan_suspend_progress"
"""Keeps scans and rebuilds where they are."""


def says(words: str, act: str = "", tunable: str = "") -> Callable[[Evidence, Disk], Suggestion]:
    """Return a suggestion of these words, ``{disk}`` the name of the disk that is to blame."""
    return lambda _, disk: Suggestion(words.replace("{disk}", disk.name), act, tunable)


class Throttle(NamedTuple):
    """A tunable that holds a scan back, its value, and what to do about it."""

    name: str
    value: int
    release: Suggestion


def held(seen: Evidence) -> Throttle | None:
    """Return the tunable that holds the scan back: one well below its default, if there is one."""
    if seen.version and seen.version < FIRST_SORTED:
        # A scan waits some ticks before each read while others do I/O.
        name = "zfs_scrub_delay" if seen.scan.function == "scrub" else "zfs_resilver_delay"
        value = seen.tunables.get(name, 4 if name == "zfs_scrub_delay" else 2)
        told = f"{{act}} so that the scan stops waiting {value} ticks before each read"
        return Throttle(name, value, Suggestion(told, "change", name, 0)) if value else None
    for name in _candidates(seen):
        now, default = seen.tunables.get(name), BY_NAME[name].default(seen.version)
        if now is not None and default is not None and now * LARGE_RAISE <= default:
            return Throttle(name, now, Suggestion("{act} (its default)", "set", name, default))
    return None


def throttle(seen: Evidence, _: Disk = NO_DISK) -> Suggestion:
    """For idle disks: release what holds the scan back, or raise the next tunable untried."""
    if (found := held(seen)) is not None:
        return found.release
    if seen.version and seen.version < FIRST_SORTED:
        return Suggestion("check zfs_scan_idle and zfs_top_maxinflight next")
    left = (_unless_tried(seen, Suggestion("{act}", "raise", name)) for name in _candidates(seen))
    return next((each for each in left if each.words), NOTHING_TO_DO)


def _unless_tried(seen: Evidence, wanted: Suggestion) -> Suggestion:
    """A suggestion to raise a tunable, or what to say instead once it was raised.

    Nothing is left to say of a value that was tried and put back, or whose effect could not be
    measured. A suggestion without a value is one of any that is higher.
    """
    name = wanted.tunable
    step, now = seen.steps.get(name), seen.tunables.get(name)
    if step is None or now is None or step.helped:
        return wanted
    if step.effect is None:
        return Suggestion("{act} shows in some minutes", "wait", name, step.after)
    if now >= step.after and step.effect.gain is not None:
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


def more_writes(seen: Evidence, _: Disk = NO_DISK) -> Suggestion:
    """For a disk being filled that gets too few requests at once."""
    name = "zfs_vdev_async_write_min_active"
    if seen.scan.function == "rebuild":
        name = "zfs_vdev_rebuild_max_active"
    value = seen.tunables.get(name)
    now = f" (now {value})" if value is not None else ""
    wanted = Suggestion(f"{{act}}{now}", "set", name, max(8, 4 * (value or 2)))
    return _unless_tried(seen, wanted)


def slow_disk(seen: Evidence, disk: Disk) -> Suggestion:
    """For one source disk that the others wait for; offline only where redundancy would remain."""
    top = seen.tops.get(disk.top)
    whole = () if top is None else redundancy(Vdev("", "root", children=(top,)), (seen.scan,))
    left = max((entry.left - 1 for entry in whole), default=0)
    when = "" if seen.scan.function == "scrub" else " after this resilver"
    told = f"check {disk.name}: errors, SMART, cable; replace it{when}"
    return Suggestion(f"{told}; or offline it (then {may_fail(left)})" if left > 0 else told)


def new_disk(seen: Evidence, disk: Disk) -> Suggestion:
    """For a resilver that goes as fast as the new disk writes."""
    small = disk.request is not None and disk.request < 128 * 1024
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
"""Bytes/s written to the disks that a scan reads, up to which applications only read."""


def foreground(seen: Evidence, _: Disk = NO_DISK) -> Suggestion:
    """For a scan that gives way to applications.

    Its time in a transaction group ends early for dirty data and for who waits for a sync
    (scan_io_queue_check_suspend, dsl_scan.c), which a rebuild does not look at. While others read
    it gets its least number of requests (vdev_queue_class_max_active, vdev_queue.c).
    """
    if seen.version and seen.version < FIRST_SORTED:
        return Suggestion(
            "set zfs_scrub_delay=0 or zfs_resilver_delay=0 to give the scan equal priority"
        )
    kind = seen.scan.function
    if kind == "rebuild":
        name = "zfs_vdev_rebuild_min_active"
    elif seen.foreground_writes > FEW_WRITES:
        name = f"zfs_{'scrub' if kind == 'scrub' else 'resilver'}_min_time_ms"
    else:
        name = "zfs_vdev_scrub_min_active"
    value = seen.tunables.get(name) or BY_NAME[name].default(seen.version)
    most = seen.tunables.get(name.replace("_min_active", "_max_active"))
    if name.endswith("_min_active") and value and most and 2 * value > most:
        return HOLD  # a least above the most is refused
    to, now = (f" to {2 * value}", f"now {value}, ") if value else ("", "")
    told = f"reduce the load, or {{act}}{to} ({now}slows applications)"
    wanted = Suggestion(told, "increase", name, 2 * value if value else None)
    left = _unless_tried(seen, wanted)
    return left if left.words else HOLD


def memory(seen: Evidence, _: Disk = NO_DISK) -> Suggestion:
    """For a scan that cannot sort everything at once.

    Its limit is a share of RAM, but no more than 5 % of the pool's data
    (dsl_scan_should_clear, module/zfs/dsl_scan.c).
    """
    name = "zfs_scan_mem_lim_fact"
    value = seen.tunables.get(name, 20)
    held = seen.scan.total_bytes
    if seen.memory and held and held / 20 <= seen.memory / max(1, value):
        return Suggestion("nothing to tune: sort memory is at its limit (5 % of pool data)")
    better = BY_NAME[name].presets["memory"]
    if value <= better:  # half of what is left each time would end with all of the RAM
        return Suggestion(f"nothing more to tune: sort memory has 1/{value} of RAM already")
    told = f"{{act}} (1/{better} of RAM; now 1/{value})"
    return Suggestion(told, "set", name, better)


def reorder(seen: Evidence, _: Disk, blocks: str) -> Suggestion:
    """For a scan whose disks seek between reads of such ``blocks``."""
    if seen.version and seen.version < FIRST_SORTED:
        return UNSORTED
    if seen.scan.function == "rebuild":
        return NOTHING_TO_DO
    told = f"{blocks}: {{act}} so that disks reorder more"
    return _unless_tried(seen, Suggestion(told, "increase", "zfs_vdev_scrub_max_active"))
