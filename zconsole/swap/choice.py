"""Before a swap: why a device is thought to have failed, and the ways to swap it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from zconsole.actions.candidates import ranked
from zconsole.actions.conditions import NO_CHECKPOINT, OTHER_HOST, present
from zconsole.actions.plan import Situation
from zconsole.actions.target import Target, partition_of, stands_in
from zconsole.diagnosis.device_errors.faults import (
    SUSPECTS,
    Deltas,
    DeviceFault,
    ProbeResults,
    likely_cause,
    with_cause,
)
from zconsole.hardware.device import Device
from zconsole.keyed_text import KeyedText
from zconsole.pool.model import FAILED
from zconsole.pool.redundancy import may_fail
from zconsole.pool.scan_outcome import left_behind
from zconsole.pool.spares import spares, unfit_spare
from zconsole.swap.disk import (
    PULL_FIRST,
    REPLACE_FIRST,
    SPARE_FIRST,
    STACKED,
    Checklist,
    MachineView,
    SwapDisk,
    disk_of,
    gone_from,
    is_being_replaced,
    leaves_of,
    replacing,
)
from zconsole.swap.effects import (
    Effect,
    effects,
    empty_bays,
    hindrance,
    kept_words,
    marked,
    redundancy_words,
    untouchable,
)

IN_ACTIONS = KeyedText("", " ({keys} has it)", "actions")
KERNEL_LINES = 2
"""Number of kernel log lines shown as a reason, the newest ones."""


@dataclass(frozen=True, slots=True)
class SwapWay:
    """One way to do the swap: replace first, spare first or pull first; possible or refused."""

    mode: str
    why: str
    """Why this way is possible, or what it costs."""
    new: SwapDisk | None = None
    """The disk or hot spare that is used; None for a disk that is inserted later."""
    refused: str = ""
    begun: bool = False
    """Whether the resilver of this way is already running."""


@dataclass(frozen=True, slots=True)
class SwapChoice:
    """Everything to know before a swap begins."""

    draft: Checklist
    """The checklist as it would begin, without its id, time and way."""
    cause: str
    """cable, disk or unclear."""
    redundancy: tuple[str, ...]
    untouchable: tuple[SwapDisk, ...]
    """Disks that must stay in place: once the old disk is out, losing one of them loses data."""
    effects: tuple[Effect, ...]
    """The effect of the pull on each leaf on the disk, this pool first."""
    ways: tuple[SwapWay, ...] = ()
    """The possible ways, best first; refused ones come last."""
    refusal: Refusal | None = None
    failed: bool = True
    """Whether the device is out or gives no data any more; errors alone do not count."""
    faulty: bool = True
    """Whether the device failed, or has errors."""
    advice: str = ""
    """Advice to check the cable first, where that is the likely cause; else empty."""

    @property
    def old(self) -> SwapDisk:
        """The disk to swap."""
        return self.draft.old

    def checklist(self, way: SwapWay) -> Checklist:
        """Return the draft with a way chosen."""
        return replace(
            self.draft,
            mode=way.mode,
            new=way.new if way.mode == REPLACE_FIRST else None,
            spare=way.new if way.mode == SPARE_FIRST else None,
            spared=self.draft.spared or way.mode == SPARE_FIRST,
        )

    @property
    def way(self) -> SwapWay | None:
        """The recommended way; None if every way is refused."""
        return next((way for way in self.ways if not way.refused), None)

    @property
    def refused(self) -> str:
        """Why no swap can begin now; empty when one can."""
        if self.refusal is not None:
            return self.refusal.why
        return "" if self.way else "; ".join(dict.fromkeys(way.refused for way in self.ways))


def choose(view: MachineView, key: str) -> SwapChoice | None:
    """Collect everything known about swapping this leaf; None if the leaf is not in the pool."""
    # zpool shows devices as complete until their resilver has written to them: mark them first.
    view = marked(view)
    situation, target = view.situation, view.target(key)
    if target is None:
        return None
    old = view.disk(target)
    fault = next((fault for fault in view.faults if fault.key == key), None)
    if fault is not None and (smart := view.counts(view.device(old))) is not None:
        # Judge by the counts that are shown: the fault's own were read at another time.
        fault = with_cause(fault, (fault.signs or ProbeResults())._replace(smart=smart))
        view = replace(view, faults=tuple(fault if f.key == key else f for f in view.faults))
    refused = refusal(view, target, old)
    lost = effects(view, old)
    gone = bool(view.devices) and view.device(old) is None
    failed = gone or target.vdev.state in FAILED
    ways = () if refused else _ways(view, target, old, lost, gone)
    draft = Checklist(
        "",
        old.pool,
        situation.guid,
        0.0,
        old,
        target.top.name,
        PULL_FIRST,
        why=tuple(_found(view, target, old, fault, gone)),
        spared=bool(target.spares),
        along=not all(effect.is_of(old) for effect in lost),
        beside=tuple(
            replace(old, name=each.target.vdev.name, key=each.target.key, pool=each.pool, path="")
            for each in lost
            if each.pool != old.pool
        ),
        was_gone=gone,
        around=around(view, old),
        boot=view.boot,
    )
    return SwapChoice(
        draft,
        cause_of(view, target),
        redundancy_words(situation),
        untouchable(situation, old),
        lost,
        tuple(sorted(ways, key=lambda way: bool(way.refused))),
        refused,
        failed=failed,
        faulty=failed or fault is not None or target.vdev.errors.total > 0,
        advice=cable_advice(view, target),
    )


def around(view: MachineView, old: SwapDisk) -> tuple[SwapDisk, ...]:
    """Return every other disk of the machine: one entry per leaf on it, or one if unused."""
    used = [disk for disk in view.leaf_disks if view.device(disk) is not None]
    wholes = {disk.whole for disk in used}
    unused = [disk_of(d) for d in view.devices if d.kind == "disk" and d.path not in wholes]
    return tuple(disk for disk in (*used, *unused) if disk.whole != old.whole)


def _found(
    view: MachineView, target: Target, old: SwapDisk, fault: DeviceFault | None, gone: bool
) -> Iterator[str]:
    """Yield the evidence for a failure and for its cause."""
    leaf = target.vdev
    note = f" ({leaf.note.strip('()')})" if leaf.note else ""  # zpool prints "(resilvering)"
    yield f"{leaf.called} is {leaf.state}{note}"
    if gone:
        yield "the machine no longer has the disk: it is out, without power, or its link is down"
    counts = (
        (leaf.errors.read, "read"),
        (leaf.errors.write, "write"),
        (leaf.errors.cksum, "checksum"),
    )
    if said := ", ".join(f"{count} {word}" for count, word in counts if count):
        yield f"{said} errors since the last clear"
    if fault is not None:
        yield fault.text or SUSPECTS[fault.cause]
        yield from (fault.signs.kernel[-KERNEL_LINES:] if fault.signs else ())
    smart = view.counts(view.device(old))
    if smart is not None:
        yield f"SMART: {smart.words()}"
    if fault is not None and fault.cause == "cable":
        yield "before buying a disk: reseat the disk and its cable; the checklist takes it back"


def _ways(
    view: MachineView, target: Target, old: SwapDisk, lost: tuple[Effect, ...], gone: bool
) -> Iterator[SwapWay]:
    """Yield the ways, most redundancy kept first; only one if a replace has already begun."""
    # A replace that has begun is continued: any other way would disturb it.
    if (group := replacing(target)) is not None:
        new, filled = view.newcomer(group), group.children[-1]
        why = f"its replacement by {new.words} has begun already: the checklist goes on from there"
        yield SwapWay(
            REPLACE_FIRST, why, new, begun=filled.resilvering and not filled.awaiting_resilver
        )
        return
    kept = kept_words(view.situation, target, old.words)
    # The pull of a disk that is out, or that a spare stands in for, costs nothing more.
    missed = gone or stands_in(target)
    insert: SwapWay | None = None
    free = free_disks(view, target)
    if device := next((each for each in free if not old.is_on(each)), None):
        new = disk_of(device)
        why = (
            f"disk {new.words} is free: replace with it, and pull {old.spot} once the"
            f" resilver is done. {kept}"
        )
        yield SwapWay(REPLACE_FIRST, why, new)
    elif (bays := empty_bays(view, old)) != "":
        where = "a free bay, if there is one" if bays is None else bays
        safer = "" if missed else "safer, as "
        # Its own pool has the new disk by then; another one may not.
        lost_by_pull = [e.text for e in lost if e.left < 0 and e.target.key != target.key]
        insert = SwapWay(
            REPLACE_FIRST,
            f"{safer}nothing is pulled before the new disk is filled. Insert it into {where},"
            f" replace with it, then pull {old.spot}. {kept}",
            refused="; ".join(lost_by_pull),
        )
    if insert is not None and not missed:
        yield insert
    standing = spares(view.pool) if target.group is None else {}
    for path, spare in standing.items():
        leaf = next((each for each in leaves_of(view.pool) if each.vdev is spare), None)
        if leaf is not None and unfit_spare(spare, target.vdev, target.top) is None:
            new = replace(view.disk(leaf), whole=path)
            why = (
                f"hot spare {new.words} stands in first; it returns once the new disk is filled."
                f" {kept}. It takes two resilvers"
            )
            yield SwapWay(SPARE_FIRST, why, new)
            break
    yield _by_pulling(view.situation, target, lost)
    if insert is not None and missed:
        yield insert


def free_disks(view: MachineView, target: Target) -> list[Device]:
    """Return the disks that could replace a device now, best first; none that failed."""
    if partition_of(target.vdev) is not None:
        return []  # a new disk has to be partitioned first
    usable = (c.device for c in ranked(view.pool, target, view.situation.facts) if c.usable)
    fails = {path for path, smart in view.smart.items() if smart.passed is False}
    return [
        device
        for device in usable
        if device.kind == "disk" and not device.failure and device.path not in fails
    ]


def _by_pulling(situation: Situation, target: Target, lost: tuple[Effect, ...]) -> SwapWay:
    """Build the pull-first way; refused if a pool needs the disk and it still works."""
    top, reads = target.top.name, target.vdev.state not in FAILED
    if target.group is not None and stands_in(target):
        names = ", ".join(spare.called for spare in target.spares)
        return SwapWay(PULL_FIRST, f"{names} stands in for it: pull it, and insert a new one")
    # A failed disk gives no data, so pulling it loses none; another pool may still read from it.
    bad = [e.text for e in lost if e.left < 0 and (reads or e.target.key != target.key)]
    refused = "; ".join(bad)
    along = [effect.target.key for effect in lost if effect.pool == situation.pool.name]
    if reads and (hindered := hindrance(situation, target, along)):
        refused = f"{hindered}: wait for that resilver, or replace that device first"
    left = max(0, min(effect.left for effect in lost if effect.target.top.name == top))
    why = (
        "no free bay is needed: take the disk offline, pull it, insert a new one. Until the"
        f" resilver is done, {may_fail(left)} in {top} without losing data"
    )
    if not reads:
        why = "ZFS no longer reads this disk. Pull it, and insert a new one"
    return SwapWay(PULL_FIRST, why, refused=refused)


def cause_of(view: MachineView, target: Target) -> str:
    """Return "cable", "disk" or "unclear", as judged by the diagnosis, else from error counts.

    Error counts of a device that has failed say nothing about the cause, so they are ignored; SMART
    counts are used in any case, also where the diagnosis left the cause unclear.
    """
    fault = next((f for f in view.faults if f.key == target.key), None)
    if fault is not None and fault.cause != "unclear":
        return fault.cause
    errors, failed = target.vdev.errors, target.vdev.state in FAILED
    if fault is None and not errors.total and not failed:
        return "unclear"
    signs = ProbeResults(view.counts(view.situation.facts.disk(target.vdev.path or "")))
    counted = Deltas(errors.read or 0, errors.write or 0, errors.cksum or 0)
    return likely_cause(Deltas() if failed else counted, signs=signs)[0]


def cable_advice(view: MachineView, target: Target) -> str:
    """Return the advice to check the cable first; empty unless it is the likely cause."""
    if cause_of(view, target) != "cable":
        return ""
    name = target.vdev.argument if target.vdev.state in FAILED else target.vdev.name
    clear = shlex.join(("zpool", "clear", view.situation.pool.name, name))
    return (
        f"{SUSPECTS['cable']}: check the cable and port, then clear the errors ({clear});"
        " replace it if they come back"
    )


class Refusal(NamedTuple):
    """The reason why a swap is not guided, with the steps to do it by hand."""

    why: str
    by_hand: tuple[tuple[str, ...], ...] = ()
    """Manual steps in order: a description followed by its commands, if any."""
    title: str = ""
    """A pool-wide problem to solve first; empty if only this device is refused."""

    @property
    def manual(self) -> tuple[str, ...]:
        """The manual steps, one line each."""
        return tuple(
            text + f": {', then '.join(commands)}" if commands else text
            for text, *commands in self.by_hand
        )

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands of the manual steps, in order."""
        return tuple(command for _, *commands in self.by_hand for command in commands)


def refusal(view: MachineView, target: Target, old: SwapDisk) -> Refusal | None:
    """Return why no checklist can swap this leaf; None if one can."""
    situation, path = view.situation, target.vdev.path or ""
    pool, name = shlex.quote(view.pool.name), shlex.quote(target.vdev.argument)
    if situation.suspended:
        # Checked first: until it is cleared, the pool takes no other command.
        return _suspended(view)
    if (why := NO_CHECKPOINT.check(situation)) is not None:
        return _checkpointed(situation, why)
    if (why := present(target).check(situation)) is not None:
        return Refusal(why)
    if (found := _no_disk(pool, name, target)) is not None:
        return found
    if (device := situation.facts.disk(path)) is not None:  # a multipath disk is one, too
        return _shared(pool, name, target, device, old)
    return _stacked(pool, name, path) if path.startswith(STACKED) else None


def _checkpointed(situation: Situation, why: str) -> Refusal:
    """Build the refusal for a pool with a checkpoint: no replace or resilver completes with one."""
    pool, checkpoint = situation.pool.name, situation.pool.checkpoint
    going = checkpoint is not None and checkpoint.discarding
    ended = left_behind(situation.pool.root) and situation.active("resilver") is None
    quoted = shlex.quote(pool)
    again = "then resilver again, which ends the replace that was begun" + KeyedText(
        "", " ({keys} has it)", "scans"
    )
    return Refusal(
        f"{why}. A resilver doesn't complete beside one either",
        (
            ("wait until the checkpoint is discarded",)
            if going
            else ("discard the checkpoint" + IN_ACTIONS, f"zpool checkpoint -d {quoted}"),
            *(((again, f"zpool resilver {quoted}"),) * ended),
        ),
        f"{pool} HAS A CHECKPOINT: {'it is being discarded' if going else 'discard it first'}",
    )


def _no_disk(pool: str, name: str, target: Target) -> Refusal | None:
    """Return why the target is not a disk that can be swapped; None if it is.

    The new device of a running replace is refused as well: guiding its pull would remove the good
    disk.
    """
    leaf, group = target.vdev, replacing(target)
    if leaf.children:
        return Refusal(f"{leaf.name} is not a device: name one of its devices")
    if leaf.kind == "file":
        return Refusal(
            f"{leaf.called} is a file, not a disk",
            (
                ("make a new file of the same size",),
                ("replace by it", f"zpool replace {pool} {name} NEWFILE"),
            ),
        )
    if leaf.kind == "dspare":
        return Refusal(f"{leaf.called} is space on the other disks of its dRAID: nothing to pull")
    if leaf.vclass in ("spare", "cache"):
        return Refusal(
            f"{leaf.called} is a {leaf.vclass} device: it holds no data of its own",
            (
                ("take it out of the pool", f"zpool remove {pool} {name}"),
                ("pull the old disk and insert the new one",),
                ("add the new one", f"zpool add {pool} {leaf.vclass} NEW"),
            ),
        )
    if group is not None and leaf is not group.children[0]:
        first = group.children[0].called
        return Refusal(
            f"{leaf.called} takes the place of {first}: name {first} to swap that one",
            ((f"where {leaf.called} is the bad one", f"zpool detach {pool} {name}"),),
        )
    return None


def _stacked(pool: str, name: str, path: str) -> Refusal:
    """Build the refusal for a device on top of a disk (dm-crypt, LVM, multipath or md)."""
    return Refusal(
        f"{path} is not a disk itself, but encryption (dm-crypt), LVM, multipath or md on top of"
        " one. Which disk is below, and how to make the new one, isn't known here",
        (
            ("find the disk below", f"lsblk --inverse {path}"),
            ("take it offline", f"zpool offline {pool} {name}"),
            ("close the mapping (cryptsetup close NAME, lvchange -an LV or multipath -f NAME)",),
            ("pull the disk by its serial number, insert the new one",),
            (
                "make the mapping again on the new one (cryptsetup luksFormat and open, or"
                " lvcreate)",
            ),
            ("replace", f"zpool replace {pool} {name} /dev/mapper/NEW"),
        ),
    )


def _shared(pool: str, name: str, target: Target, device: Device, old: SwapDisk) -> Refusal | None:
    """Build the refusal for a disk with other uses as well (mounts, swap, holders), or None."""
    found = [f"{where} is mounted from it" for where in device.mounted]
    found += ["it is used as swap"] if device.swap else []
    found += [f"{holder} is built on it" for holder in device.holders]
    found += [f"it also holds {content}" for content in device.contents.names]
    if not found:
        return None
    part = partition_of(target.vdev) or "N"
    return Refusal(
        f"{old.words} holds more than this pool: {'; '.join(found)}",
        (
            ("save what else is on the disk, and unmount it or switch its swap off (swapoff)",),
            ("take it offline", f"zpool offline {pool} {name}"),
            (f"pull {old.words}, insert the new disk",),
            (
                "copy the partition table from a disk that is still there",
                "sgdisk --replicate=/dev/NEW /dev/OTHER",
                "sgdisk --randomize-guids /dev/NEW",
            ),
            (
                "where the machine boots from it, make it bootable again (grub-install, or"
                " proxmox-boot-tool format and init of the EFI partition)",
            ),
            ("replace", f"zpool replace {pool} {name} /dev/disk/by-id/NEW-part{part}"),
        ),
    )


def _suspended(view: MachineView) -> Refusal:
    """Build the refusal for a suspended pool: bring its disks back and clear it before any swap."""
    out, pool = gone_from(view), view.pool.name
    if view.situation.may_be_elsewhere:
        return Refusal(
            f"not while the pool is suspended: {OTHER_HOST}",
            (("make sure that no other host has it, then reboot this machine and import it",),),
            f"{pool} IS SUSPENDED: another host may have it",
        )
    back = [view.disk(target) for target in out if not is_being_replaced(target)]
    spots = " and ".join(disk.spot for disk in back)
    bring = "check cables, ports and power of its disks"
    if back:
        words = " and ".join(disk.words for disk in back)
        bring = f"bring {words} back, into the same bay; check cable, port and power"
    title = f"bring {spots or 'its disks'} back, then clear it"
    if view.devices and not back:
        title = "its disks are there: clear it"
    listed = "; ".join(
        f"{view.disk(target).words}, which {view.newcomer(group).spot} replaces already"
        if (group := replacing(target)) is not None and is_being_replaced(target)
        else view.disk(target).words
        for target in out
    )
    return Refusal(
        f"not while the pool is suspended: {pool} waits for its disks, and takes no command but"
        f" zpool clear. {f'Out: {listed}' if out else 'Which disks are out is not known'}",
        (
            (bring,),
            ("then resume the pool" + IN_ACTIONS, f"zpool clear {shlex.quote(pool)}"),
            ("pull nothing until then",),
        ),
        f"{pool} IS SUSPENDED: {title}",
    )
