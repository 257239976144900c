"""Health of a pool: one word, and the reasons, worst first; spares and damaged files among these.

Hot spares that would not help are in use needlessly, failed, or too small for a vdev.

zpool prints the path of a damaged file if it can find one, otherwise the number of the object, of
the dataset, or of both (zpool_obj_to_path_impl in lib/libzfs/libzfs_pool.c, 2.1 to master). An
entry leaves the list after two consecutive scrubs completed without it (spa_errlog_rotate in
module/zfs/spa_errlog.c).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from zconsole.pool.model import (
    APART,
    GROUP_KINDS,
    MULTIHOST,
    UNEXPLAINED,
    Pool,
    SampleFailure,
    Scan,
    Vdev,
    data_vdevs,
    is_group,
)
from zconsole.pool.redundancy import REPAIRS, Redundancy, is_complete, parity
from zconsole.pool.scan_outcome import (
    READS,
    WELL,
    blocked_repair,
    canceled_repair,
    not_restored,
    settling,
)
from zconsole.units import counted, duration, size

LEAST_DEVICE = 64 * 1024**2
"""Bytes of the smallest device that ZFS accepts (SPA_MINDEVSIZE, include/sys/fs/zfs.h)."""
LABELS = 4 * 1024**2 + 512 * 1024
"""Bytes of the labels and the boot block (VDEV_LABEL_{START,END}_SIZE in vdev_impl.h)."""


NAMED = 8
"""Most vdevs to name; the others are counted."""
STANDING = ("AVAIL", "INUSE")
"""States of a spare that has not failed."""


class SpareProblem(NamedTuple):
    """One hot spare that would not help when a device fails."""

    kind: str
    """One of these:

    - ``failed``
    - ``idle``: in use, though the device it replaced is back
    - ``small``: too small for a vdev that no other spare fits, or for all
    - ``elsewhere``: in use, but not in this pool
    - ``several``: in use for several devices, or for one with another spare or a replacement, too
    - ``unused``: free, though a device that it fits has failed (``pool.spares``)
    """
    name: str
    text: str
    """The problem and what to do about it, in one line."""
    device: str | None = None
    """For ``unused``: name of the device that failed."""
    command: str | None = None
    """For ``unused``: the command that lets it stand in."""
    zed: bool | None = None
    """For ``unused``: whether ZED runs; None if unknown."""

    @property
    def severity(self) -> str:
        """``warning`` for a spare that failed, or should be available again or in use."""
        return "warning" if self.kind in ("failed", "idle", "unused") else "notice"


def spare_problems(
    root: Vdev,
    scans: Iterable[Scan] = (),
    now: float | None = None,
    returned: Collection[str] = (),
) -> tuple[SpareProblem, ...]:
    """Find problems of the pool's hot spares at epoch second ``now``, in tree order.

    While a repair runs, and for some seconds after it, no spare counts as idle: it or the device
    is being filled, and the kernel then releases most spares by itself (spa_vdev_resilver_done).
    Nor does one whose device is named in ``returned``: that came back, and its repair will begin.
    """
    spares = [vdev for vdev in root.children if vdev.vclass == "spare"]
    if not spares:
        return ()
    places, needs = _places(root), _needs(root)
    repairs = [scan for scan in scans if scan.function in REPAIRS]
    calm = not any(s.active or (now is not None and settling(now, s.end)) for s in repairs)
    standing = [spare for spare in spares if spare.state in STANDING]
    most = max(map(_capacity, standing), default=0)
    # Named draid<parity>-<top-level vdev>-<number> (vdev_draid_spare_name, vdev_draid.c).
    drawn = (s.name.split("-") for s in standing if s.kind == "dspare")
    own = {parts[1] for parts in drawn if len(parts) == 3}
    unmet = [(n, name) for n, name in needs if n > most and name.rpartition("-")[2] not in own]
    found: list[SpareProblem] = []
    for spare in spares:
        if spare.shared:
            text = f"spare {spare.name} is attached in several places and counts in none"
            advice = "replace the disks it stands in for"
            found.append(SpareProblem("several", spare.name, f"{text}: {advice}"))
        elif spare.state == "INUSE" and calm:
            found += _in_use(spare, places, returned)
        # Don't judge the size of a failed one: libzfs may report another (seen on 2.3.9).
        if spare.state and spare.state not in STANDING:
            why = f" ({spare.note})" if spare.note else ""
            text = f"spare {spare.name} is {spare.state}{why} and can't stand in"
            advice = "remove it and add another one"
            found.append(SpareProblem("failed", spare.name, f"{text}: {advice}"))
        elif spare.state and (room := _capacity(spare)):
            # Too small for every vdev, or for one that no other spare fits.
            none = min((need for need, _ in needs), default=0) > room
            if (lacking := _too_large(needs if none else unmet, room)) is not None:
                text = f"spare {spare.name} ({size(room)}) is too small for {lacking}"
                found.append(SpareProblem("small", spare.name, text))
    return tuple(found)


def least_bytes(top: Vdev) -> int | None:
    """Return the least bytes of a device that can join a top-level vdev; None if unknown.

    ``vdev_get_min_asize`` (vdev.c): a raidz member needs the top-level vdev's size divided by its
    width, a mirror member all of it. Never more than the smallest present disk has.
    """
    present = min((leaf.size_bytes for leaf in top.leaves() if leaf.size_bytes), default=None)
    if not top.size_bytes or top.kind.startswith("draid"):
        return present
    width = len(top.children) if top.kind.startswith("raidz") else 1
    least = top.size_bytes // max(1, width) + LABELS
    return least if present is None else min(least, present)


def too_small(root: Vdev, room: int) -> str | None:
    """Name the vdevs for which a spare of ``room`` bytes is too small; None if it fits all."""
    return _too_large(_needs(root), room)


def _needs(root: Vdev) -> list[tuple[int, str]]:
    """Return the bytes that a device of each vdev needs, and its name; logs have no spares."""
    return [(least_bytes(top) or 0, top.name) for top in data_vdevs(root)]


def _too_large(needs: Sequence[tuple[int, str]], room: int) -> str | None:
    lacking = sorted(((need, name) for need, name in needs if need > room), key=lambda n: -n[0])
    if not lacking:
        return None
    names = ", ".join(name for _, name in lacking[:NAMED])
    more = f" and {len(lacking) - NAMED} more" if len(lacking) > NAMED else ""
    return f"{names}{more} (needs {size(lacking[0][0])})"


def _capacity(spare: Vdev) -> int:
    """Return the bytes of a spare; 0 if unknown, or for a distributed spare of one dRAID."""
    return 0 if spare.kind == "dspare" else spare.size_bytes or 0


class _Place(NamedTuple):
    """The group in which a spare is in use, and whether that is below another spare's group."""

    group: Vdev
    is_inner: bool


def _places(root: Vdev) -> dict[str, _Place]:
    """Map spares to where they are in use, by GUID and, as text sources have none, by name."""
    groups = [vdev for vdev in root.walk() if is_group(vdev) and vdev.kind == "spare"]
    inner = {id(vdev) for group in groups for vdev in group.children[0].walk()}
    found: dict[str, _Place] = {}
    for group in groups:
        for leaf in (leaf for other in group.children[1:] for leaf in other.leaves()):
            for word in filter(None, (leaf.guid, leaf.name)):
                found.setdefault(word, _Place(group, id(group) in inner))
    return found


def _in_use(
    spare: Vdev, places: Mapping[str, _Place], returned: Collection[str]
) -> Iterator[SpareProblem]:
    """Yield a problem if a spare is in use needlessly, or not for a device of this pool."""
    place = places.get(spare.guid or spare.name)
    if place is None:
        # zpool prints INUSE after searching the other pools (print_status_config, zpool_main.c).
        text = f"spare {spare.name} is INUSE, but not in this pool: it can't stand in here"
        yield SpareProblem("elsewhere", spare.name, text)
    elif (first := place.group.children[0]).children:
        # One device may have several, as each spare and each replacement can fail in turn.
        lost = [leaf.name for leaf in first.leaves() if leaf.state != "ONLINE"] or [first.name]
        text = f"spare {spare.name} is still INUSE for {', '.join(lost)}"
        advice = f"detach {lost[0]} once its replacement is complete, then the spare"
        yield SpareProblem("several", spare.name, f"{text}: {advice}")
    elif is_complete(first) and first.name not in returned:
        text = f"spare {spare.name} is still INUSE though {first.name} is ONLINE and complete"
        advice = f"detach the spare, or {first.name} if it is to be replaced"
        yield SpareProblem("idle", spare.name, f"{text}: {advice}")
    elif place.is_inner:
        text = f"spare {spare.name} is still INUSE for {first.name} ({first.state})"
        yield SpareProblem("several", spare.name, f"{text}, beside another spare")


class Health(NamedTuple):
    """Health of a pool in one word, with the reasons, worst first."""

    word: str
    """One of these, worst first:

    - FAULTED, UNAVAIL, SUSPENDED
    - NOT RESTORED: redundancy is not restored, and no repair is running
    - ERRORS: damaged data
    - DEGRADED: by the pool's state or those of devices, as the vdevs above stay ONLINE if the
      kernel itself faults a disk (spa_async_fault_vdev, module/zfs/spa.c 2.4.4)
    - ATTENTION: a vdev has no redundancy left, devices have errors, a spare failed or is in use
      needlessly, a checkpoint blocks the running resilver, or that has marked no device yet, the
      last repair was canceled, a cache device failed, the last scrub ended with errors, damage was
      cleared and not checked since, or zpool reports a problem of its own
    - OK

    UNKNOWN if the source lacks data needed to call the pool OK. STALE, NOT IMPORTED and CONNECTING
    while there is no fresh sample.
    """
    severity: str
    """``ok``, ``notice``, ``warning`` or ``error``."""
    reasons: tuple[str, ...] = ()


CONNECTING = Health("CONNECTING", "notice", ("no answer yet",))
"""Health before the first sample of a machine."""

_UPKEEP = re.compile(r"\((?:\d+% )?(?:un)?(?:initializ|trim)")
"""Begin of notes on initialize and trim, which don't explain why a device is gone."""
_HARMLESS = re.compile(
    r"features are|on-disk format|can still be used|compatibility|being resilvered|block size",
    re.IGNORECASE,
)
"""Phrases in zpool's messages on healthy pools (print_status_reason, cmd/zpool/zpool_main.c)."""
OTHER_HOST = "all I/O is suspended: multihost writes failed, another host may have the pool"
MILDER = ("OFFLINE", "DEGRADED")
"""States listed after those of missing devices: OFFLINE is chosen, DEGRADED can still be read."""


UNCOUNTED = "data errors (number unknown)"
LOST_STATES = frozenset({"FAULTED", "UNAVAIL", "SUSPENDED"})


def health(
    pool: Pool,
    now: float,
    regrouped: float | None = None,
    unsteady: Iterable[str] = (),
    damaged: Iterable[tuple[str, int]] = (),
    spares: Collection[SpareProblem] = (),
    unchecked: str | None = None,
) -> Health:
    """Judge a pool from its own data at epoch second ``now``; the worst finding decides.

    ``regrouped`` and ``damaged`` are as for ``not_restored``. ``unsteady``: descriptions of devices
    that disconnected and returned lately, which the pool's counters don't show. Useless ``spares``
    are always among the reasons, and make the word ATTENTION if they need fixing. ``unchecked``:
    description of damage that was cleared and not checked since.
    """
    unrestored = tuple(not_restored(pool, now, regrouped, damaged))
    idle = tuple(spare.text for spare in spares)
    every = tuple(pool.root.walk())
    away, errors = tuple(v for v in every if v.state != "ONLINE"), tuple(_counters(every))
    repairing = any(scan.active and scan.function in REPAIRS for scan in pool.scans)
    groups = (v.children for v in every if repairing and v.kind == "replacing")
    # A text that ends early may show one of the two, or neither.
    pairs = ((group[0], group[-1]) for group in groups if len(group) > 1)
    news = {old.name: new.name for old, new in pairs if new.state in READS}
    stay = (v for v in every if v.children or v.state == "ONLINE")
    staying = tuple(_counters(stay)) if errors else ()
    blocked, lacks = tuple(blocked_repair(pool)), (pool.lacks,) if pool.lacks else ()
    hidden = (unchecked,) if unchecked else ()
    files: tuple[str, ...] = ()
    if pool.error_count or pool.damaged:
        known = counted(pool.error_count, "data error") if pool.error_count else UNCOUNTED
        failed = ", I/O that could not be done included: scrub once I/O resumes"
        files = (known + (failed if pool.suspended else ": files are damaged"),)
    reasons = (*unrestored, *blocked, *files, *hidden, *_devices(away, news), *idle, *lacks)
    if pool.suspended or pool.state in LOST_STATES:
        word = "SUSPENDED" if pool.suspended else pool.state
        return Health(word or "", "error", (*_lost(pool, away), *reasons, *staying))
    # Missing redundancy is worse than damaged files: the next failing disk would damage more.
    if unrestored or pool.error_count or pool.damaged:
        word = "NOT RESTORED" if unrestored else "ERRORS"
        return Health(word, "error", (*reasons, *staying))
    doubts = (*errors, *unsteady, *_doubts(pool, bool(errors)))
    # Consider the devices as well: the pool may be ONLINE with a faulted disk.
    data = (v for v in away if v.vclass not in APART)
    impaired = any(v.state not in ("", "UNKNOWN") for v in data)
    # A text that ends before its table may lack worse problems than it shows.
    bare = not pool.root.children and bool(lacks or pool.state is None)
    if not bare and (pool.state not in (None, "ONLINE") or impaired):
        word = pool.state if pool.state not in (None, "ONLINE") else "DEGRADED"
        return Health(word or "", "warning", (*reasons, *staying))
    if bare or lacks:
        rest = (reason for reason in reasons if reason not in lacks)
        return Health("UNKNOWN", "notice", (*lacks, *doubts, *rest))
    accepted = ("", "UNKNOWN", "OFFLINE")  # OFFLINE is the operator's choice, not a problem
    uncached = any(v.vclass == "cache" and v.state not in accepted for v in away)
    amiss = uncached or any(spare.severity == "warning" for spare in spares)
    if doubts or blocked or hidden or amiss:
        return Health("ATTENTION", "warning", (*doubts, *reasons))
    return Health("OK", "ok", reasons)


def without_redundancy(
    found: Health,
    left: Iterable[tuple[Vdev, Redundancy]],
    scans: Iterable[Scan],
    unmarked: Iterable[Scan] = (),
) -> Health:
    """Lower the health to ATTENTION if a vdev has no redundancy ``left``, or that is unknown.

    zpool reports such a pool as ONLINE, for example after a disk came back without the data written
    meanwhile. ``unmarked``: result of ``unmarked_repairs``.
    """
    begun = tuple(f"the {s.function} marks no device yet: redundancy unknown" for s in unmarked)
    if found.word in WELL and begun:
        found = Health("ATTENTION", "warning", (*begun, *found.reasons))
    bare = [entry.vdev for vdev, entry in left if entry.left == 0 < parity(vdev)]
    if found.word not in WELL or not bare:
        return found
    repairing = any(scan.active and scan.function in REPAIRS for scan in scans)
    until = "until the resilver ends" if repairing else "left"
    reasons = (f"{name}: no redundancy {until}" for name in bare)
    return Health("ATTENTION", "warning", (*reasons, *found.reasons))


def unreachable(trouble: SampleFailure, age: float) -> Health:
    """Return the health of a pool without a fresh sample; the last one is ``age`` seconds old."""
    lost = trouble.kstat if trouble.kstat in LOST_STATES else None
    word = lost or ("NOT IMPORTED" if trouble.absent else "STALE")
    seen = f"last seen {duration(age)} ago"
    return Health(word, "error" if lost else "warning", (trouble.text, seen))


def _lost(pool: Pool, away: Iterable[Vdev]) -> Iterator[str]:
    if pool.suspension == MULTIHOST:
        yield OTHER_HOST
        yield "do not clear it: make sure that no other host has it, then reboot and import it"
    elif pool.suspension == UNEXPLAINED and pool.lacks:
        yield "all I/O is suspended, for a reason that is not shown"
    elif pool.suspended:
        yield "all I/O is suspended: reconnect the device, then clear"
        if pool.root.children and not any(v.vclass != "spare" and not v.children for v in away):
            yield "no device is missing: if multihost is on, make sure that no other host has it"
    elif pool.message:
        yield pool.message


def _doubts(pool: Pool, explained: bool) -> Iterator[str]:
    """Yield reasons why a pool is not OK though all its devices are ONLINE.

    ``explained``: whether error counters already explain zpool's message.
    """
    scrub = next((s for s in pool.scans if s.function == "scrub" and s.state == "finished"), None)
    if scrub is not None and scrub.errors:
        yield f"the last scrub ended with {counted(scrub.errors, 'error')}"
    elif pool.message and not explained and not _HARMLESS.search(pool.message):
        yield pool.message
    elif pool.see and not pool.message and not explained:
        yield f"zpool has a doubt, explained at {pool.see}"
    yield from canceled_repair(pool)


def _devices(away: Iterable[Vdev], news: Mapping[str, str]) -> Iterator[str]:
    """Yield devices that are not ONLINE, and vdevs that have lost too many to be read.

    ``news``: names of the disks that are being filled, by the name of the one they replace.
    """
    shown = [v for v in away if v.state and v.kind != "root" and v.vclass != "spare"]
    gone = [
        vdev
        for vdev in shown
        if not vdev.children or (vdev.state in LOST_STATES and vdev.kind not in GROUP_KINDS)
    ]
    for vdev in sorted(gone, key=lambda v: v.state in MILDER):
        why = vdev.note.partition("  ")[0]
        detail = f" ({why.strip('()')})" if why and not _UPKEEP.match(why) else ""
        by = f", being replaced by {news[vdev.name]}" if vdev.name in news else ""
        yield f"{vdev.name} {vdev.state}{detail}{by}"


def _counters(every: Iterable[Vdev]) -> Iterator[str]:
    """Yield devices with errors since the last clear, most first: ``bay03: 12 checksum errors``.

    A parent vdev is named if none of its devices has errors: an error that belongs to no single
    device counts only there, and zpool's messages are about devices (find_vdev_problem,
    lib/libzfs/libzfs_status.c).
    """
    noisy = [v for v in every if v.errors.total and not any(c.errors.total for c in v.children)]
    for vdev in sorted(noisy, key=lambda v: -v.errors.total):
        read, write, cksum, _ = vdev.errors
        counts = ((read, "read"), (write, "write"), (cksum, "checksum"))
        said = ", ".join(f"{size(count)} {word}" for count, word in counts if count)
        yield f"{vdev.name}: {said} error{'s' if vdev.errors.total > 1 else ''}"


SCRUB_TWICE = "leaves the list after two scrubs"
_ID = "0x[0-9a-f]{1,16}"
_NAMELESS = re.compile(rf"(?:<(?P<gone>{_ID})>|(?P<dataset>.+)):<(?P<object>{_ID})>")
_METADATA = "<metadata>"
_OF_DATASET = {0: "its list of objects", 1: "a volume's data, or a filesystem's root metadata"}
"""Objects with fixed numbers: DMU_META_DNODE_OBJECT; ZVOL_OBJ and MASTER_NODE_OBJ."""


def explained(entry: str, destroyed: Mapping[str, str]) -> str:
    """Explain an entry without a path, and what to do; "" for one with a path.

    ``destroyed``: last names of destroyed datasets, if known, by hexadecimal id.
    """
    match = _NAMELESS.fullmatch(entry)
    if match is None:
        return ""
    number = int(match["object"], 16)
    if match["gone"]:
        name = destroyed.get(match["gone"])
        what = f"was in {name}, which is destroyed" if name else "a destroyed snapshot or dataset"
        return f"{what}: {SCRUB_TWICE}"
    if match["dataset"] == _METADATA:
        return (
            "the pool's own metadata, no file: scrub twice; if it is still listed, copy the data"
            " away and make the pool anew"
        )
    if number in _OF_DATASET:
        return f"{_OF_DATASET[number]}: restore {match['dataset']} from a backup, then scrub twice"
    return (
        f"a deleted file (inode {number}): {SCRUB_TWICE}. Unless {match['dataset']} is locked or"
        " not mounted: load its key, mount it and look again"
    )


def notes(entries: Iterable[str] | None, destroyed: Mapping[str, str]) -> dict[str, str]:
    """Map the entries that need it to their explanations."""
    pairs = ((entry, explained(entry, destroyed)) for entry in entries or ())
    return {entry: note for entry, note in pairs if note}


def destroyed_ids(entries: Iterable[str] | None) -> Iterator[str]:
    """Yield the hexadecimal ids of destroyed datasets in the entries."""
    for entry in entries or ():
        if (match := _NAMELESS.fullmatch(entry)) and match["gone"]:
            yield match["gone"]
