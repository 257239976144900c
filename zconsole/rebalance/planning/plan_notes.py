"""Notes of a plan, to read before a job runs: no gain, shared blocks, tight quotas, other users.

Until the original is removed, a file being copied counts twice: in quotas of datasets, and in those
of users, groups and projects, which ``zfs userspace`` and its siblings list (zfs-userspace(8)).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path

from zconsole.pool.hazards import hazards
from zconsole.pool.volumes import volume_sentences
from zconsole.rebalance.engine import holders, namespaces
from zconsole.rebalance.engine.file_locks import FilesInUse
from zconsole.rebalance.engine.holders import PROC
from zconsole.rebalance.planning import forecast
from zconsole.rebalance.planning.engine_choice import COPIES, FEATURE, SINCE
from zconsole.rebalance.planning.exports import processes_of
from zconsole.rebalance.planning.facts import Dataset, FactsReader, PoolFacts, mount_of
from zconsole.rebalance.planning.forecast import DirectoryPlan
from zconsole.rebalance.planning.plan_document import PlanDocument
from zconsole.rebalance.planning.settings import EVEN, Limits, Settings
from zconsole.system import mounts
from zconsole.system.patient import NoAnswerError, Patient
from zconsole.system.printable import clean
from zconsole.units import counted, size

NAMED = 3
"""Most quota holders to name; the rest are counted."""
NO_GAIN = 0.005
"""Share of their size by which blocks must shrink for a job to gain anything."""
MORE_PARITY = 0.01
"""Share of the bytes to move above which the parity that they take in addition is told."""
USUAL_RECORD = 128 << 10
NOT_ROOT = "not root: other users' files fail, and trusted attributes get lost"
UNTRUSTED = "without CAP_SYS_ADMIN on the host: trusted attributes are not seen, and get lost"
INITIAL = 0xEFFFFFFC
"""Inode of the initial PID namespace (PROC_PID_INIT_INO, linux/proc_ns.h)."""
_GUESTS = ("virtiofsd", "virtfs-proxy-he")
"""Programs that share a directory with a virtual machine; comm has 15 characters (proc(5))."""
_VIRTUAL = ("qemu", "kvm")
_SHARING = (b"-virtfs", b"-fsdev")
_STACKED = frozenset({0x794C7630, 0xF15F, 0x6A656A62, 0x61756673})
"""statfs(2) types of overlay, ecryptfs (linux/magic.h), shiftfs and aufs."""


def of_rights() -> Iterator[str]:
    """Note privileges that this process lacks."""
    if os.geteuid() != 0:
        yield NOT_ROOT
    elif not namespaces.sees_trusted():
        yield UNTRUSTED


def nothing_to_gain(
    aim: str,
    plans: Sequence[DirectoryPlan],
    pool: PoolFacts,
) -> tuple[str | None, list[str]]:
    """Return a reason to refuse a job, and notes, if none of the sampled files would gain anything.

    A job is refused only if every file was sampled; otherwise others might gain.
    """
    if aim == "width":
        if not any(layout.parity for _, layout in forecast.layouts_of(pool)):
            return "no raidz vdev: there is no width to gain", []
        shares = [forecast.width_ratio(plan.extents, pool) for plan in plans]
        if any(share is None or share < 1 - NO_GAIN for share in shares):
            return None, []
        looked, words = (
            sum(len(plan.listed) for plan in plans),
            "as wide as it would be written now",
        )
    elif aim == "recordsize":
        same = [
            _has_record(f, plan) for plan in plans for f in plan.found.sample.files if f.st_size
        ]
        if not same or not all(same):
            return None, []
        looked, words = len(same), "of the recordsize it would get"
    else:
        return None, []
    if looked >= sum(plan.found.files for plan in plans):
        return f"every file is {words}", []
    return None, [f"each of {looked} files looked at is {words}"]


def _has_record(file: os.stat_result, plan: DirectoryPlan) -> bool:
    dataset = plan.place.dataset
    record = (dataset.number("recordsize") if dataset else None) or USUAL_RECORD
    block, length = file.st_blksize, file.st_size
    return block == record if length > record else length <= block


def differing(aim: str, plan: DirectoryPlan, pool: PoolFacts | None) -> Iterator[str]:
    """Yield current dataset properties that the sampled files were not written with."""
    dataset = plan.place.dataset
    if dataset is None or pool is None or plan.choice.engine is None:
        return
    files = [file for file in plan.found.sample.files if file.st_size]
    others = sum(not _has_record(file, plan) for file in files)
    if others and plan.choice.engine == "copy":  # rewriting keeps the recordsize
        yield f"recordsize: {others} of {len(files)} files looked at have another"
    words, copies = dataset.properties.get("compression", "off"), dataset.number("copies") or 1
    extents = plan.extents
    if not extents:
        if aim == "properties":
            yield f"compression={words}, copies={copies}: only zdb tells what is there (root)"
        return
    compressed = any(extent.stored < extent.length for extent in extents)
    if compressed != dataset.is_on("compression"):
        yield f"compression={words}: what is there is {'' if compressed else 'not '}compressed"
    if any(extent.copies != copies for extent in extents):
        yield f"copies={copies}: what is there has another number"
    if (share := forecast.width_ratio(extents, pool)) and share < 1 - NO_GAIN:
        yield "parity takes less of what is written now"


def of_shared_blocks(pool: PoolFacts | None, plans: Sequence[DirectoryPlan]) -> Iterator[str]:
    """Note deduplicated blocks from a time when dedup, now off, was on."""
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


def of_journal(
    reader: FactsReader, journal: Path | None, plans: Sequence[DirectoryPlan]
) -> Iterator[str]:
    """Note a journal that a power cut may take back behind what was done to the files.

    In the pool of the files themselves it can't: what came before is on the disks before.
    """
    copied = [plan.place.dataset for plan in plans if plan.choice.engine == "copy"]
    if journal is None or not copied:
        return
    with contextlib.suppress(OSError):
        mount = mount_of(mounts.mount_at(os.fsencode(journal.parent)))
        dataset = os.fsdecode(mount.source) if mount and mount.kind == b"zfs" else ""
        if not dataset or all(each and each.pool == dataset.split("/")[0] for each in copied):
            return
        if reader.property_of(dataset, "sync") == "disabled":
            yield (
                f"sync=disabled on {clean(dataset)}: after a power cut the journal there may not"
                " know the newest temporary files, which then stay; --journal puts it elsewhere"
            )


def of_quotas(reader: FactsReader, plans: Sequence[DirectoryPlan]) -> Iterator[str]:
    """Note quotas with too little room for copies, for each dataset that will be copied."""
    flights: dict[str, tuple[Dataset, int]] = {}
    for plan in plans:
        dataset = plan.place.dataset
        if dataset is not None and plan.choice.engine == "copy":
            flight = max(plan.in_flight, flights.get(dataset.name, (0, 0))[1])
            flights[dataset.name] = (dataset, flight)
    for dataset, flight in flights.values():
        own, left = clean(dataset.name), dataset.number("available")
        for name in ("quota", "refquota"):
            limit = dataset.number(name)
            if limit and left is not None and left < flight:
                text = f"{name} of {size(limit)}: {size(left)} left, and copies count twice"
                yield f"{own}: {text} until they are in place"
        near = (quota for quota in reader.quotas(dataset.name) if quota.left < flight)
        if tight := sorted(near, key=attrgetter("left")):
            named = [f"{q.holder} ({size(q.left)} of {size(q.limit)} left)" for q in tight[:NAMED]]
            more = f" and {len(tight) - NAMED} more" if len(tight) > NAMED else ""
            yield (
                f"{own}: near their quotas are {', '.join(named)}{more}: copies count twice until"
                " they are in place, so that files of theirs, and what they write meanwhile, may"
                " find it exceeded"
            )


def of_limits(
    plans: Sequence[DirectoryPlan], pool: PoolFacts | None, limits: Limits
) -> Iterator[str]:
    """Note limits whose effect may surprise."""
    looked = [file for each in plans for file in each.found.sample.files]
    most = limits.max_bytes
    if most is not None and (large := sum(file.st_size > most for file in looked)):
        each = f"{large} of {len(looked)} files looked at exceed {size(most)} each"
        yield f"{each}: such files stay where they are"
    for plan in plans:
        fits = plan.found.room / plan.grown
        if plan.choice.engine == "copy" and plan.grown > 1 and plan.found.largest > fits:
            yield (
                f"copies are larger than their files are now: those above {size(fits)} are left"
                " where they are, unless space is freed"
            )
    if pool is None and limits.until_spread is not None:
        yield "no pool: no spread to stop at"


def of_plan(
    plan: PlanDocument, plans: Sequence[DirectoryPlan], pool: PoolFacts | None, settings: Settings
) -> list[str]:
    """Notes on the limits, the pool, its snapshots and the options of ``zfs rewrite``."""
    limits, letters = settings.limits, settings.rewrite_options
    notes = list(of_limits(plans, pool, limits))
    copied = [each for each in plans if each.choice.engine == "copy"]
    if pool is not None:
        met = dict.fromkeys(word for each in copied for word in ("copy", *each.found.sampled))
        notes += [text for word in met for text in hazards(word, pool.version)]
        if len(pool.spaces) == 1:
            notes.append("one vdev: nothing to balance")
        if idle := [space.name for space in pool.spaces if not space.weight]:
            notes.append(f"no new writes go to {', '.join(idle)}: removed, or allocating=off")
        now = pool.condition
        busy = filter(None, (now.moving, now.scanning))
        notes += [f"{work} running: the job waits for it" for work in busy]
        if now.state != "ONLINE":
            notes.append(f"pool {now.state}: the job waits until it is ONLINE")
        notes += forecast.special_notes(plan.special or ())
        notes += of_parity(plan, plans, pool, limits)
        if settings.aim == "balance" and (plan.spread_before or 0.0) > EVEN:
            notes += volume_sentences(plan.volumes, size)
        if now.checkpoint:
            notes.append("a checkpoint keeps all freed blocks allocated")
        if limits.until_spread is None and plan.bytes_to_target and _overshoots(plan):
            notes.append(
                f"moving everything goes too far: --until-spread {plan.target_spread:g} would stop"
                f" after {plan.bytes_to_target} bytes"
            )
    if any(d.place.dataset and not d.place.dataset.is_on("acltype") for d in copied):
        notes.append("acltype=off: old ACLs, or those of another system, are hidden and get lost")
    held = sum(s.holds > 0 for d in plans if d.place.dataset for s in d.place.dataset.snapshots)
    if held:
        notes.append(f"{counted(held, 'snapshot')} {'is' if held == 1 else 'are'} held")
    if pool is not None:
        notes += of_pins(plan.bytes_within(limits), letters, plans)
        notes += of_options(letters, plans, pool)
    return notes


def of_parity(
    plan: PlanDocument, plans: Sequence[DirectoryPlan], pool: PoolFacts, limits: Limits
) -> Iterator[str]:
    """Note raw space that the data takes in addition on vdevs with more parity than its own."""
    vdevs = zip(plan.vdevs or (), pool.spaces, strict=False)
    taken = sum((vdev.fill_after - vdev.fill_before) * space.size for vdev, space in vdevs)
    goal, factor = plan.bytes_within(limits), plan.raw_factor or 1.0
    more = taken - factor * sum(each.within(goal, each.pinned_least) for each in plans)
    if more > MORE_PARITY * goal:
        yield (
            f"raw free space falls by about {size(more)}: the data takes more parity where it goes"
        )


def of_pins(goal: int, letters: str, plans: Sequence[DirectoryPlan]) -> Iterator[str]:
    """Note old blocks that may stay allocated after ``goal`` bytes of files have moved.

    Nothing if the estimate has no range. ``letters``: the options of ``zfs rewrite``.
    """
    most = sum(plan.within(goal, plan.pinned_most) for plan in plans)
    if most <= sum(plan.within(goal, plan.pinned_least) for plan in plans):
        return
    why = "what holds them may hold different ones"
    if any(plan.held_most > (plan.pinned.get("snapshots") or 0) for plan in plans):
        why = "of files that changed since a snapshot it holds the rest"
        why += ", which is sent again as well" * ("P" not in letters)
    yield f"up to {size(most)} of old blocks may stay: {why}"


def _overshoots(plan: PlanDocument) -> bool:
    """Whether moving everything would leave the vdev that is the emptiest now too full.

    Too full means fuller than another one by more than the wanted spread.
    """
    vdevs = plan.vdevs or ()
    emptiest = min(vdevs, key=lambda vdev: vdev.fill_before)
    least = min(vdev.fill_after for vdev in vdevs)
    return emptiest.fill_after - least > (plan.target_spread or 0.0)


def of_other_users(
    look: FilesInUse, plans: Sequence[DirectoryPlan], proc: Path = PROC
) -> Iterator[str]:
    """Note other users of files to copy; rewriting in place does not affect them."""
    copied = [plan for plan in plans if plan.choice.engine == "copy"]
    if not copied:
        return
    # SEEK_DATA on tmpfs does not report blocks reserved past the end.
    if any(plan.place.kind == "tmpfs" for plan in copied):
        yield "tmpfs: blocks reserved past the end of a file are not seen, and get lost"
    yield COPIES
    if who := _hidden(look.holders.hidden, proc):
        yield f"cannot see which files {who} have open: those files are moved too"
    if _in_container(proc):
        yield "in a container: files that processes outside it hold open are not seen"
    if look.unseen:
        yield f"{look.unseen} mount namespaces have no process: files mounted in them are not seen"
    if look.lost:
        yield (
            f"{look.lost} overlays are made of directories that are not found: unmount those made"
            " of directories here, or what is written through them is lost"
        )
    if process := _in_unmounted_overlay(look, proc):
        yield (
            f"{holders.name_of(process, proc)} may use an overlay that is mounted nowhere: end it,"
            " or what it writes to files here is lost"
        )
    if any(plan.shared for plan in copied):
        yield "exported over NFS or SMB: files that other hosts hold open are not seen"
    if any(_is_sharing(place, name) for place, name, _ in processes_of(proc)):
        yield "a directory is shared with a virtual machine: files it has cached are not seen"


def _hidden(processes: Sequence[str], proc: Path) -> str:
    """Name the processes whose open files can't be seen, if any.

    The kernel hides a process with more privileges even from root.
    """
    if not (proc / "1").exists():  # hidepid=2 hides other users' processes entirely (proc(5))
        return "other users"
    if len(processes) == 1:
        return holders.name_of(processes[0], proc)
    return f"{len(processes)} processes" if processes else ""


def _in_container(proc: Path) -> bool:
    """Whether /proc belongs to a PID namespace other than the initial one."""
    try:
        return (proc / "1/ns/pid").stat().st_ino != INITIAL
    except OSError:
        return (proc / "self/ns/pid").stat().st_ino != INITIAL


def _is_sharing(process: Path, name: str) -> bool:
    """Whether a process shares a directory with a virtual machine."""
    if not name.startswith(_VIRTUAL):
        return name in _GUESTS
    try:
        line = Patient().call((process / "cmdline").read_bytes)  # reads its memory: may hang
    except NoAnswerError:
        return True
    except OSError:
        return False  # it ended
    return any(word in _SHARING for word in line.split(b"\0"))


def _in_unmounted_overlay(look: FilesInUse, proc: Path) -> str | None:
    """Return a process that uses an overlay which is in no mount table; None if there is none.

    Such an overlay exists after ``umount -l`` and before move_mount(2), and the kernel does not
    reveal its layers. Opening a working directory may ask a server, which may be dead: if the
    deadline ends meanwhile, the process asked about last counts.
    """
    at = [""]
    try:
        return Patient().call(lambda: _first_in_overlay(look, proc, at))
    except NoAnswerError:
        return at[-1]


def _first_in_overlay(look: FilesInUse, proc: Path, at: list[str]) -> str | None:
    known = {number for view in look.views for number in view.mounts}
    links = [
        (each.process, each.link)
        for held in look.holders.by_inode.values()
        for each in held
        if each.mount not in known and not each.nameless
    ]
    with holders.opened(str(proc)) as table:
        for process in holders.processes(table):
            for place in holders.places(table, process, holders.KCMP_FS):
                links += [(process, f"{place}/cwd"), (process, f"{place}/root")]
        for process, link in links:
            at.append(process)
            with contextlib.suppress(OSError):  # it ended, or may not be looked at
                fd = os.open(link, os.O_PATH | os.O_CLOEXEC, dir_fd=table)
                try:
                    number, kind = mounts.mount_number(fd), mounts.filesystem_type(fd)
                finally:
                    os.close(fd)
                if number not in known and kind in _STACKED:
                    return process
    return None


def of_options(letters: str, plans: Sequence[DirectoryPlan], pool: PoolFacts) -> Iterator[str]:
    """Note what the options do to snapshots and clones, or suggest options that would help."""
    rewritten = [plan for plan in plans if plan.choice.engine == "rewrite"]
    if not rewritten:
        return
    datasets = [plan.place.dataset for plan in rewritten if plan.place.dataset]
    has_snapshots = any(each.snapshots for each in datasets)
    if "P" in letters:
        if has_snapshots:
            yield "-P: incremental sends do not grow; snapshots keep the old blocks all the same"
        if pool.properties.get(FEATURE) == "enabled":
            yield (
                "-P makes the pool feature physical_rewrite active: OpenZFS before 2.4 can then"
                " only import the pool read-only, until these datasets are destroyed"
            )
    if "S" in letters and (has_snapshots or any(each.is_on("origin") for each in datasets)):
        yield "-S: blocks that the newest snapshot has stay where they are, and balance nothing"
    if "C" in letters and pool.number("bclonesaved"):
        yield "-C: blocks shared by cloning stay where they are, and balance nothing"
    sent = any(plan.sent for plan in rewritten)
    if sent and "P" not in letters and pool.version >= SINCE["P"][0]:
        yield "--rewrite-options P (zfs rewrite -P) keeps incremental sends from growing"
    spared = ("snapshots", "clones", "block_clones")
    pinned = any(plan.held_most or any(map(plan.pinned.get, spared)) for plan in rewritten)
    if pinned and not {"S", "C"} & set(letters) and pool.version >= SINCE["S"][0]:
        yield "--rewrite-options SC (zfs rewrite -S -C) leaves alone what snapshots or clones hold"
