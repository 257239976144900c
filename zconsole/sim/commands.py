"""The effects of ``zpool`` on a simulated pool, with its refusals (zpool_main.c, libzfs_pool.c)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from zconsole.sim import lifecycle, scan
from zconsole.sim.disk import (
    CANT_OPEN,
    FAULTED,
    OFFLINE,
    REMOVED,
    RUNNING,
    SUSPENDED,
    WORK_CANCELED,
    JobProgress,
    Leaf,
)
from zconsole.sim.state import (
    CANCELED,
    DISCARDING,
    ERRORSCRUBBING,
    EXISTS,
    SCRUB,
    Checkpoint,
    ErrorScrub,
    PoolState,
    Relocation,
    SimulatedScan,
)
from zconsole.sim.topology import (
    Group,
    Member,
    Top,
    groups,
    leaves_of,
    parent,
    siblings,
    top_name,
)

if TYPE_CHECKING:
    from zconsole.system.process import Completed

_REOPENED = (FAULTED, REMOVED, CANT_OPEN)
LABEL_SPACE = 1 << 28
"""A device may be this many bytes smaller than the one it replaces (rounding to metaslabs)."""
DISPLACED = "/old"
"""Suffix that the kernel adds to the path of a device replaced by another at the same path."""


class CommandError(Exception):
    """A refusal: the text that zpool prints, and its exit status."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(f"{text}\n")
        self.status = status


def replace(pool: PoolState, old: str, new: str, *, sequential: bool = False) -> None:
    """Run ``zpool replace [-s] POOL OLD NEW``; devices by path, name or GUID."""
    failed = f"cannot replace {old} with {new}"
    top, leaf = _place(pool, old, failed, 255)
    fresh = loose(pool, new)
    if refused := _replace_refused(pool, top, leaf, fresh, sequential):
        raise CommandError(f"{failed}: {refused}", 255)
    _take(pool, fresh)
    kind = "spare" if fresh in pool.spares else "replacing"
    group, place = parent(top, leaf), siblings(top, leaf)
    if group is not None and group.kind == kind:  # no further level, see spa_vdev_attach
        place.append(fresh)
    else:
        place[place.index(leaf)] = Group(kind, pool.new_guid(), [leaf, fresh])
    pool.note("vdev_attach", f"{fresh.name} replaces {leaf.name}", vdev=fresh.path)
    if leaf.path == fresh.path:  # in its place, see spa_vdev_attach
        leaf.path, leaf.name = leaf.path + DISPLACED, leaf.name + DISPLACED
    _resilver(pool, top, fresh, sequential)


def attach(pool: PoolState, device: str, new: str) -> None:
    """Run ``zpool attach POOL DEVICE NEW`` on a disk, a mirror, or a raidz (by its name)."""
    failed = f"cannot attach {new} to {device}"
    index = _top_called(pool, device)
    if index is not None and pool.tops[index].kind == "raidz":
        _widen(pool, index, new, failed)
        return
    top, leaf = _place(pool, device, failed, 255)
    fresh = loose(pool, new)
    if top.kind not in ("mirror", "disk") or parent(top, leaf) is not None:
        raise CommandError(f"{failed}: can only attach to mirrors and top-level disks", 255)
    if refused := _replace_refused(pool, top, leaf, fresh, sequential=False):
        raise CommandError(f"{failed}: {refused}", 255)
    _take(pool, fresh)
    top.kind = "mirror"
    top.members.append(fresh)
    pool.note("vdev_attach", f"{fresh.name} attached", vdev=fresh.path)
    _resilver(pool, top, fresh, sequential=False)


def _widen(pool: PoolState, index: int, new: str, failed: str) -> None:
    """Start a raidz expansion (2.3, vdev_raidz_attach_sync)."""
    top, fresh = pool.tops[index], loose(pool, new)
    smallest = min(leaf.model.size for leaf in top.leaves())
    reasons = {
        "checkpoint exists": pool.checkpoint is not None,
        "raidz expansion in progress": pool.expansion is not None and pool.expansion.running,
        "device is too small": fresh.model.size < smallest - LABEL_SPACE,
    }
    _refuse(failed, reasons, 255)
    _cancel_scrub(pool, "scrub canceled by the replacement")
    _take(pool, fresh)
    fresh.dtl = 0.0
    top.members.append(fresh)
    pool.expansion = Relocation(index, pool.now, top.alloc)
    pool.note("vdev_attach", f"{fresh.name} widens {top_name(top, index)}", vdev=fresh.path)


def detach(pool: PoolState, device: str) -> None:
    """Run ``zpool detach POOL DEVICE``."""
    failed = f"cannot detach {device}"
    top, leaf = _place(pool, device, failed, 255)
    if pool.checkpoint is not None:
        raise CommandError(f"{failed}: checkpoint exists", 255)
    group = parent(top, leaf)
    if group is None and (top.kind != "mirror" or top.width < 2):
        raise CommandError(f"{failed}: only applicable to mirror and replacing vdevs", 255)
    rest = [member for member in siblings(top, leaf) if member is not leaf]
    if leaf.complete and not any(x.complete for member in rest for x in leaves_of(member)):
        raise CommandError(f"{failed}: no valid replicas", 255)
    if group is None:
        top.members.remove(leaf)
    else:
        group.children.remove(leaf)
        if len(rest) == 1:
            place = siblings(top, group)
            place[place.index(group)] = rest[0]
        if group.kind == "spare" and leaf not in pool.spares:
            pool.spares = [x for x in pool.spares if x not in leaves_of(rest[-1])]  # it stays
        for kept in (x for member in rest for x in leaves_of(member)):  # see spa_vdev_detach
            if kept.path == leaf.path + DISPLACED:
                kept.path, kept.name = leaf.path, kept.name.removesuffix(DISPLACED)
    lifecycle.release(pool, leaf)
    pool.note("vdev_remove", f"{leaf.name} detached", vdev=leaf.path)


def offline(pool: PoolState, device: str) -> None:
    """Run ``zpool offline POOL DEVICE``."""
    failed = f"cannot offline {device}"
    top, leaf = _place(pool, device, failed)
    # Set the state for a moment, to count the replicas that would be left.
    was, leaf.state = leaf.state, OFFLINE
    failed_then = top.failed
    leaf.state = was
    if failed_then:
        raise CommandError(f"{failed}: no valid replicas")
    lifecycle.lose(pool, leaf, OFFLINE)


def online(pool: PoolState, device: str, *, expand: bool = False) -> str:
    """Run ``zpool online [-e] POOL DEVICE`` and return its output."""
    top, leaf = _place(pool, device, f"cannot online {device}")
    if not leaf.present:
        return (
            f"warning: device '{device}' onlined, but remains in faulted state\n"
            "use 'zpool replace' to replace devices that are no longer present\n"
        )
    if not leaf.online:
        lifecycle.come_back(pool, leaf, 0.01)
    if expand or pool.autoexpand:
        lifecycle.expand(top)
    return ""


def clear(pool: PoolState, device: str | None = None) -> None:
    """Run ``zpool clear POOL [DEVICE]``: forget errors, reopen devices, resume a suspended pool."""
    leaves = pool.in_vdevs()
    if device is not None:
        leaves = [_place(pool, device, f"cannot clear errors for {device}")[1]]
    for leaf in leaves:
        leaf.reads.errors = leaf.writes.errors = leaf.cksum_errors = leaf.slow_ios = 0.0
    missed = 0.0 if pool.suspended else 0.02  # nothing was written while it was suspended
    pool.suspended = False
    for leaf in leaves:
        if leaf.present and leaf.state in _REOPENED:
            lifecycle.come_back(pool, leaf, missed)
    if any(top.failed for top in pool.tops if top.members):
        pool.suspended = True
        raise CommandError(f"cannot clear errors for {pool.name}: I/O error")
    pool.note("vdev_clear", "errors cleared", "notice")


def scrub(
    pool: PoolState,
    action: str = "start",
    *,
    errors: bool = False,
    txgs: tuple[int, int] | None = None,
) -> None:
    """Run ``zpool scrub [-e] [-p|-s] POOL``.

    ``action`` is start, pause or stop; ``txgs`` limits a new scrub as in ``scan.begin``.
    """
    verb = {"start": "scrub", "pause": "pause scrubbing", "stop": "cancel scrubbing"}[action]
    failed = f"cannot {verb} {pool.name}"
    if pool.resilvering or pool.rebuilding:
        raise CommandError(f"{failed}: currently resilvering")
    current = pool.scan if pool.scan is not None and pool.scan.active else None
    known = pool.error_scrub
    running = known if known is not None and known.state == ERRORSCRUBBING else current
    if running is None:
        _scrub_nothing(pool, action, failed, errors, txgs)
        return
    noun = "scrub" if isinstance(running, SimulatedScan) else "error scrub"
    if action == "stop":
        running.state, running.end, running.paused_since = CANCELED, pool.now, 0.0
        event = "scrub_abort", "scrub canceled", "notice"
    elif action == "pause":
        if running.paused_since:
            raise CommandError(f"{failed}: {noun} is paused; use 'zpool scrub' to resume {noun}")
        running.paused_since = pool.now
        event = "scrub_paused", "scrub paused", "notice"
    else:
        if not running.paused_since:
            why = f"currently {noun}bing; use 'zpool scrub -s' to cancel {noun}"
            raise CommandError(f"{failed}: {why}")
        if isinstance(running, SimulatedScan):
            running.spent_paused += pool.now - running.paused_since
        running.paused_since = 0.0
        event = "scrub_resume", "scrub resumed", "info"
    if isinstance(running, SimulatedScan):
        pool.note(*event)


def _scrub_nothing(
    pool: PoolState, action: str, failed: str, errors: bool, txgs: tuple[int, int] | None
) -> None:
    """Start a scrub, or one of the blocks with known errors, as none runs; refuse to stop one."""
    if action == "stop":
        raise CommandError(f"{failed}: there is no active scrub")
    if action == "pause":
        return  # no error: zpool is silent here since 2.2
    if errors:
        pool.error_scrub = ErrorScrub(pool.now, max(1.0, pool.data_errors))
    else:
        scan.begin(pool, SCRUB, txgs=txgs)


def change(pool: PoolState, kind: str, action: str = "start", device: str | None = None) -> None:
    """Run ``zpool trim|initialize [-c|-s] POOL [DEVICE]``; ``action``: start, cancel or suspend."""
    aims = [leaf for leaf in pool.in_vdevs() if leaf.online]
    if device is not None:
        aims = [_place(pool, device, f"cannot {kind} '{device}'")[1]]
    for leaf in aims:
        job = leaf.jobs.get(kind)
        if job is not None and job.state == RUNNING and action == "start":
            doing = "trimming" if kind == "trim" else "initializing"
            raise CommandError(f"cannot {kind} '{leaf.name}': currently {doing}")
        if action != "start":
            if job is not None and job.state == RUNNING:
                job.state, job.time = (WORK_CANCELED if action == "cancel" else SUSPENDED), pool.now
            continue
        done = job.done if job is not None and job.state == SUSPENDED else 0.0
        share, rate = 0.6, 2.5e9
        if kind == "initialize":
            share, rate = 0.5, leaf.model.outer * leaf.model.write * 0.7
        leaf.jobs[kind] = JobProgress(done, leaf.model.size * share, RUNNING, pool.now, rate)
    if action == "start":
        pool.note(f"{kind}_start", f"{kind} started")
    else:
        pool.note(f"{kind}_{action}", f"{kind} {action}ed", "notice")


def locate(pool: PoolState, device: str) -> tuple[Top, Leaf] | None:
    """Return the leaf in use with path, name or GUID ``device``, and its top-level vdev."""
    pairs = ((top, leaf) for top in pool.tops for leaf in top.leaves())
    return next(((top, leaf) for top, leaf in pairs if _is_called(leaf, device)), None)


def _place(pool: PoolState, device: str, failed: str, status: int = 1) -> tuple[Top, Leaf]:
    """Return the leaf in use called ``device`` and its top-level vdev, or raise CommandError."""
    found = locate(pool, device)
    if found is None:
        raise CommandError(f"{failed}: no such device in pool", status)
    return found


def _top_called(pool: PoolState, name: str) -> int | None:
    """Return the number of the top-level vdev with this name or GUID; None if there is none."""
    for index, top in enumerate(pool.tops):
        lone = top.kind == "disk" and _is_called(next(top.leaves()), name)
        if lone or name in (top_name(top, index), str(top.guid)):
            return index
    return None


def loose(pool: PoolState, device: str) -> Leaf:
    """Return a free device, on the shelf or a hot spare. Raises CommandError if there is none."""
    used = pool.in_vdevs()
    for leaf in (*pool.host.shelf, *pool.spares):
        if leaf not in used and _is_called(leaf, device):
            return leaf
    if locate(pool, device) is None:
        raise CommandError(f"cannot resolve path '{device}': No such file or directory")
    raise CommandError(
        "invalid vdev specification\nuse '-f' to override the following errors:\n"
        f"{device} is part of active pool '{pool.name}'"
    )


def _is_called(leaf: Leaf, name: str) -> bool:
    return name in (leaf.path, leaf.path.removesuffix("-part1"), leaf.name, str(leaf.guid))


def _replace_refused(pool: PoolState, top: Top, old: Leaf, new: Leaf, sequential: bool) -> str:
    """Return why the kernel would refuse, in libzfs' words (zpool_vdev_attach), or ""."""
    if pool.checkpoint is not None:
        return "checkpoint exists"
    group = parent(top, old)
    spared = group is not None and group.kind == "spare"
    if spared and (old in pool.spares) != (new in pool.spares):
        return "already in replacing/spare config; wait for completion or use 'zpool detach'"
    if new.model.size < old.model.size - LABEL_SPACE:
        return "device is too small"
    if not sequential:
        return "currently sequentially resilvering" if pool.rebuilding else ""
    if top.kind not in ("mirror", "draid", "disk"):
        return "only mirror and dRAID vdevs support sequential reconstruction"
    return "currently resilvering" if pool.resilvering else ""


def _take(pool: PoolState, fresh: Leaf) -> None:
    pool.host.shelf = [x for x in pool.host.shelf if x is not fresh]
    fresh.dtl, fresh.opened = 1.0, pool.t


def _resilver(pool: PoolState, top: Top, fresh: Leaf, sequential: bool) -> None:
    """Start, restart or defer a resilver, or start a rebuild."""
    _cancel_scrub(pool, "scrub canceled by the replacement")
    if sequential:
        known = top.rebuild.targets if top.rebuild and top.rebuild.active else []
        scan.begin_rebuild(pool, top, [*known, fresh])
    else:
        lifecycle.resilver(pool, fresh)


def _cancel_scrub(pool: PoolState, why: str) -> None:
    current = pool.scan
    if current is not None and current.active and current.function == SCRUB:
        current.state, current.end, current.paused_since = CANCELED, pool.now, 0.0
        pool.note("scrub_abort", why, "notice")


# zpool add (zpool_vdev.c, spa_vdev_add in spa.c)

_CLASSES = ("special", "dedup", "log", "cache", "spare")
_FORCE = "invalid vdev specification\nuse '-f' to override the following errors:\n"


def add(pool: PoolState, words: Sequence[str]) -> None:
    """Run ``zpool add POOL [special|dedup|log|cache|spare] [mirror|raidzN] DEVICE…``."""
    left = list(words)
    vclass = left.pop(0) if left and left[0] in _CLASSES else "normal"
    kind = left.pop(0) if left and left[0].startswith(("mirror", "raidz")) else "disk"
    fresh = [loose(pool, device) for device in left]
    if vclass in ("cache", "spare"):
        (pool.cache if vclass == "cache" else pool.spares).extend(fresh)
    else:  # one vdev of all devices, or one for each single disk
        parity = int(kind[-1]) if kind.startswith("raidz") else 0
        groups: list[list[Member]] = [[leaf] for leaf in fresh] if kind == "disk" else [[*fresh]]
        for members in groups:
            top = Top(kind.rstrip("123"), pool.new_guid(), members, parity, vclass)
            if vclass != "log" and (why := _mismatch(pool, top)):
                raise CommandError(f"{_FORCE}mismatched replication level: {why}")
            top.space = top.usable
            pool.tops.append(top)
    pool.host.shelf = [leaf for leaf in pool.host.shelf if leaf not in fresh]
    for leaf in fresh:
        leaf.dtl, leaf.opened = 0.0, pool.t
        pool.note("vdev_add", f"{leaf.name} added", vdev=leaf.path)


def _mismatch(pool: PoolState, new: Top) -> str:
    """Return how ``new`` differs from the pool's last data vdev, or "" if they match.

    Mirrors and raidz of equal fault tolerance may be mixed without -f (is_raidz_mirror,
    zpool_vdev.c).
    """
    last = pool.data_tops()[-1]
    if last.tolerance == new.tolerance and {last.kind, new.kind} == {"mirror", "raidz"}:
        return ""
    if (last.kind, last.nparity, last.width) == (new.kind, new.nparity, new.width):
        return ""
    index = pool.tops.index(last)
    return f"pool uses {top_name(last, index)} and new vdev is {new.kind} of {new.width}"


# zpool remove (zpool_vdev_remove in libzfs_pool.c, spa_vdev_remove in vdev_removal.c)

_MAPPING_ENTRY = 24
"""Bytes of an entry of the table of moved blocks (vdev_indirect_mapping_entry_phys_t)."""


def remove(pool: PoolState, device: str) -> None:
    """Run ``zpool remove POOL DEVICE``."""
    failed = f"cannot remove {device}"
    _refuse(failed, _checkpointed(pool))
    spare = next((leaf for leaf in pool.spares if _is_called(leaf, device)), None)
    cache = next((leaf for leaf in pool.cache if _is_called(leaf, device)), None)
    if spare is not None:
        reasons = {
            "dRAID spares cannot be removed": spare.kind == "dspare",
            "Pool busy; removal may already be in progress": spare in pool.in_vdevs(),
        }
        _refuse(failed, reasons)
        pool.spares = [leaf for leaf in pool.spares if leaf is not spare]
        _leaves(pool, spare)
    elif cache is not None:
        pool.cache = [leaf for leaf in pool.cache if leaf is not cache]
        _leaves(pool, cache)
    else:
        index = _top_called(pool, device)
        if index is None:
            raise CommandError(f"{failed}: no such device in pool")
        if pool.tops[index].vclass == "log":
            _remove_log(pool, pool.tops[index])
        else:
            _evacuate(pool, index, failed)


def _remove_log(pool: PoolState, log: Top) -> None:
    """Leave a hole in the place of a log (vdev_remove_make_hole_and_free)."""
    for leaf in log.leaves():
        _leaves(pool, leaf)
    log.kind, log.vclass, log.members, log.alloc, log.space = "hole", "normal", [], 0.0, 0.0


def _leaves(pool: PoolState, leaf: Leaf) -> None:
    lifecycle.release(pool, leaf)
    pool.note("vdev_remove_aux", f"{leaf.name} removed", vdev=leaf.path)


def _evacuate(pool: PoolState, index: int, failed: str) -> None:
    """Begin to copy the data of a vdev to the others (spa_vdev_remove_top)."""
    top, tops = pool.tops[index], pool.data_tops()
    normal = pool.normal_tops()
    free = sum(each.free for each in normal)
    needed = top.alloc
    if top.vclass == "normal":
        free -= sum(each.space for each in normal) / 32  # spa_get_slop_space
        needed = top.space if top.allocating else 0.0
    odd = len({each.ashift for each in (*normal, top)}) > 1
    odd = odd or any(each.nparity or groups(each) for each in tops)
    last = not any(each.allocating for each in normal if each is not top)
    reasons = {
        "removal for this vdev is already in progress.": top.removing,
        "out of space": free < needed,
        "Pool busy; removal may already be in progress": pool.removal is not None
        and pool.removal.running,
        "I/O error": not top.sources(),
        "invalid config; all top-level vdevs must have the same sector size and not be raidz.": odd
        or last,
    }
    _refuse(failed, reasons)
    top.removing, top.allocating = True, False
    pool.removal = Relocation(index, pool.now, top.alloc)


def _cancel_removal(pool: PoolState) -> None:
    """Run ``zpool remove -s POOL``: what was copied is freed again."""
    removal = pool.removal
    if removal is None or not removal.running:
        raise CommandError("cannot cancel removal: operation is not in progress")
    removal.state, removal.end = CANCELED, pool.now
    top = pool.tops[removal.vdev]
    others = [each for each in pool.normal_tops() if each is not top]
    for each, share in zip(others, pool.write_shares(others), strict=True):
        each.alloc = max(0.0, each.alloc - removal.moved * share)
    top.removing, top.allocating = False, True


def _remove(pool: PoolState, words: Words) -> str | None:
    """Run ``zpool remove [-np|-s] POOL [DEVICE…]``."""
    if "s" in words.options:
        _cancel_removal(pool)
    elif "n" in words.options:
        return "".join(f"{device} {_mapping(pool, device)}\n" for device in words.operands)
    else:
        for device in words.operands:
            remove(pool, device)
    return None


def _mapping(pool: PoolState, device: str) -> int:
    """Return the bytes of memory for the table of a vdev's moved blocks, 0 without data."""
    index = _top_called(pool, device)
    top = pool.tops[index] if index is not None else None
    held = top.alloc if top is not None and top.vclass != "log" else 0.0
    return int(held / pool.layout.old_run) * _MAPPING_ENTRY


def _checkpointed(pool: PoolState) -> dict[str, bool]:
    """Return zpool's refusals for a pool with a checkpoint, and whether each applies."""
    state = pool.checkpoint.state if pool.checkpoint is not None else None
    return {
        "checkpoint exists": state == EXISTS,
        "currently discarding checkpoint": state == DISCARDING,
    }


def _refuse(failed: str, reasons: Mapping[str, bool], status: int = 1) -> None:
    """Raise CommandError with the first reason that applies."""
    for reason, applies in reasons.items():
        if applies:
            raise CommandError(f"{failed}: {reason}", status)


# The command line (zpool(8), 2.3)

FEATURES = (
    "device_rebuild",
    "head_errlog",
    "raidz_expansion",
    "allocation_classes",
    "zpool_checkpoint",
)
"""Features that a simulated pool from 0.8 on has enabled; plans also check the version."""


class Words(NamedTuple):
    """The words after a command's name: option letters, and operands without the pool."""

    options: frozenset[str]
    operands: Sequence[str]


Command = Callable[[PoolState, Words], str | None]
"""Runs a command and returns its output. Raises CommandError."""


def execute(pools: Sequence[PoolState], argv: Sequence[str]) -> Completed:
    """Run a ``zpool`` command line (zpool(8), 2.3)."""
    from zconsole.system.process import Completed  # lazy: a scenario runs no command line

    try:
        return Completed(tuple(argv), 0, _execute(pools, argv[1:]) or "", "")
    except CommandError as error:
        return Completed(tuple(argv), error.status, "", str(error))


def _execute(pools: Sequence[PoolState], words: Sequence[str]) -> str | None:
    name, *rest = words or [""]
    command = _COMMANDS.get(name)
    if command is None:
        raise CommandError(f"unrecognized command '{name}'", 2)
    options = frozenset(letter for word in rest if _is_option(word) for letter in word[1:])
    operands = [word for word in rest if not _is_option(word)]
    if name == "set":  # the pool stands between the property and a vdev
        operands = [*operands[1:2], *operands[:1], *operands[2:]]
    if name in ("scrub", "get"):  # dates or properties stand before the pool
        operands = operands[::-1]
    if name == "add" and "o" in options:  # the value of -o stands before the pool
        operands = operands[1:]
    pool = next((p for p in pools if p.name == operands[0]), None)
    if pool is None:
        raise CommandError(f"cannot open '{operands[0]}': no such pool")
    if pool.suspended and name not in ("clear", "get"):
        raise CommandError(f"cannot {name} '{pool.name}': pool I/O is currently suspended")
    return command(pool, Words(options, operands[1:]))


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _scrub(pool: PoolState, words: Words) -> None:
    """Run ``zpool scrub``; -C, -S and -E (2.3, 2.4) limit it to some txgs, else it reads all."""
    action = "stop" if "s" in words.options else "pause" if "p" in words.options else "start"
    txgs = None
    if "C" in words.options:
        txgs = pool.scrubbed_txg, pool.txg
    elif words.options & {"S", "E"}:
        dates = [datetime.fromisoformat(date).timestamp() for date in reversed(words.operands)]
        first = dates[0] if "S" in words.options else 0.0
        last = dates[-1] if "E" in words.options else pool.now
        txgs = pool.txg_at(first), pool.txg_at(last)
    scrub(pool, action, errors="e" in words.options, txgs=txgs)


def _work(kind: str, pool: PoolState, words: Words) -> None:
    action = "cancel" if "c" in words.options else "suspend" if "s" in words.options else "start"
    change(pool, kind, action, *words.operands)


def _set(pool: PoolState, words: Words) -> None:
    """Run ``zpool set autoexpand|sit_out|autosit|allocating=on|off POOL [VDEV]``."""
    (name, _, value), *vdevs = words.operands[0].partition("="), *words.operands[1:]
    on = value == "on"
    if name == "autoexpand":
        pool.autoexpand = on
    elif name == "sit_out":
        _place(pool, vdevs[0], f"cannot set property for '{vdevs[0]}'")[1].sitting_out = on
    elif (index := _top_called(pool, vdevs[0])) is not None:
        if name == "allocating":
            _allocate(pool, pool.tops[index], on)
        else:
            pool.tops[index].autosit = on


def _allocate(pool: PoolState, top: Top, on: bool) -> None:
    """Set ``allocating`` of a vdev; refused for the last one, as by vdev_passivate."""
    others = (other for other in pool.normal_tops() if other is not top)
    if not on and top.vclass == "normal" and not any(other.allocating for other in others):
        text = f"cannot set property for '{pool.name}': invalid argument for this pool operation"
        raise CommandError(text)
    top.allocating = on


def _get(pool: PoolState, words: Words) -> str:
    """Run ``zpool get -Hp -o COLUMNS all|PROPERTY POOL``."""
    enabled = "disabled" if pool.one_stage else "enabled"
    moved = any(top.kind == "indirect" for top in pool.tops)
    found = {
        "autoexpand": "on" if pool.autoexpand else "off",
        "guid": str(pool.guid),
        "last_scrubbed_txg": str(pool.scrubbed_txg),
        **{f"feature@{name}": enabled for name in FEATURES},
        "feature@device_removal": "active" if moved else enabled,
        "feature@resilver_defer": "enabled" if pool.resilver_defer else "disabled",
    }
    rows = ({"property": name, "value": value} for name, value in found.items())
    wanted, columns = words.operands
    asked = [row for row in rows if wanted in ("all", row["property"])]
    return "".join("\t".join(map(row.__getitem__, columns.split(","))) + "\n" for row in asked)


def _checkpoint(pool: PoolState, words: Words) -> None:
    """Run ``zpool checkpoint [-d]``, as spa_checkpoint and spa_checkpoint_discard do."""
    if "d" not in words.options:
        reasons = {
            "device removal in progress": pool.removal is not None and pool.removal.running,
            "raidz expansion in progress": pool.expansion is not None and pool.expansion.running,
            **_checkpointed(pool),
        }
        _refuse(f"cannot checkpoint '{pool.name}'", reasons)
        pool.checkpoint = Checkpoint(pool.now, 0.0)
        pool.note("history_event", "a checkpoint was made", "notice")
        return
    if pool.checkpoint is None:
        raise CommandError(f"cannot discard checkpoint in '{pool.name}': no checkpoint exists")
    pool.checkpoint.state = DISCARDING
    pool.note("history_event", "the checkpoint is being discarded", "notice")


_COMMANDS: dict[str, Command] = {
    "add": lambda pool, words: add(pool, words.operands),
    "replace": lambda pool, words: replace(pool, *words.operands, sequential="s" in words.options),
    "attach": lambda pool, words: attach(pool, *words.operands),
    "detach": lambda pool, words: detach(pool, *words.operands),
    "offline": lambda pool, words: offline(pool, *words.operands),
    "online": lambda pool, words: online(pool, *words.operands, expand="e" in words.options),
    "clear": lambda pool, words: clear(pool, *words.operands),
    "scrub": _scrub,
    "resilver": lambda pool, _: lifecycle.resilver_all(pool),
    "trim": partial(_work, "trim"),
    "initialize": partial(_work, "initialize"),
    "set": _set,
    "get": _get,
    "checkpoint": _checkpoint,
    "remove": _remove,
}
