"""Before the swap: what failed and why it is thought so, and the ways in which it can be done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from zconsole.actions.candidates import ranked, spares, unfit_spare
from zconsole.actions.plan import Situation
from zconsole.actions.target import Target, find, stands_in
from zconsole.diagnosis.device_errors.faults import SUSPECTS, DeviceFault
from zconsole.pool.model import Vdev
from zconsole.pool.redundancy import may_fail
from zconsole.pool.topology import FAILED
from zconsole.swap.cause import cable_advice, cause_of
from zconsole.swap.checklist import (
    PULL_FIRST,
    REPLACE_FIRST,
    SPARE_FIRST,
    WAYS,
    Checklist,
    needed_steps,
)
from zconsole.swap.disk import SwapDisk, device_of, disk_of, disk_of_leaf, leaves_of
from zconsole.swap.effects import (
    Effect,
    effects,
    hindrance,
    kept_words,
    marked,
    redundancy_words,
    untouchable,
)
from zconsole.swap.refusal import Refusal, partition_of, refusal
from zconsole.swap.suspension import suspension
from zconsole.swap.view import MachineView

KERNEL_LINES = 2
"""Newest lines of the kernel's log that are shown as a reason."""


@dataclass(frozen=True, slots=True)
class SwapWay:
    """One way to do the swap."""

    mode: str
    why: str
    """Why it can be done so, or what it costs."""
    new: SwapDisk | None = None
    """The disk or hot spare it uses; None: the one that will be inserted."""
    refused: str = ""
    begun: bool = False
    """Whether its resilver runs already …"""
    left: float | None = None
    """… and the seconds left of that, by its own ETA; None where unknown."""


@dataclass(frozen=True, slots=True)
class SwapChoice:
    """Everything to know before a swap begins."""

    old: SwapDisk
    vdev: str
    guid: str | None
    found: tuple[str, ...]
    """What failed and why it is thought so, the device's state first."""
    cause: str
    """cable, disk or unclear."""
    redundancy: tuple[str, ...]
    untouchable: tuple[SwapDisk, ...]
    """Disks that must stay where they are: without them, too, data is lost."""
    effects: tuple[Effect, ...]
    """What the pull does to each pool on the disk, this pool first."""
    ways: tuple[SwapWay, ...] = ()
    """The best first; those that are refused last."""
    gone: bool = False
    """Whether the machine has lost the disk already."""
    refusal: Refusal | None = None
    failed: bool = True
    """Whether it is out, or gives no data any more; else it only has errors, or none."""
    faulty: bool = True
    """Whether the device failed, or has errors."""
    spared: bool = False
    """Whether a hot spare stands in for it already."""
    advice: str = ""
    """What to do before any swap: check the cable, where that is the likely cause; else empty."""

    @property
    def along(self) -> bool:
        """Whether other devices of pools are on the disk, and go with it."""
        return any((e.pool, e.key) != (self.old.pool, self.old.key) for e in self.effects)

    def steps(self, way: SwapWay) -> tuple[str, ...]:
        """The steps of a way that this machine needs, as its checklist lists them."""
        spared = self.spared or way.mode == SPARE_FIRST
        return needed_steps(way.mode, bool(self.old.light), spared, self.along)

    def with_left(self, left: float | None) -> SwapChoice:
        """The same where the ETA of the resilver that runs is known: ``left`` seconds."""
        ways = (replace(way, left=left) if way.begun else way for way in self.ways)
        return replace(self, ways=tuple(ways))

    @property
    def way(self) -> SwapWay | None:
        """The way that is recommended; None when there is none now."""
        return next((way for way in self.ways if not way.refused), None)

    @property
    def refused(self) -> str:
        """Why no swap can begin now; empty when one can."""
        if self.refusal is not None:
            return self.refusal.why
        return "" if self.way else "; ".join(way.refused for way in self.ways)


def choose(v: MachineView, key: str) -> SwapChoice | None:
    """What is known of a swap of this leaf; None when it is not in the pool."""
    v = marked(v)
    s = v.situation
    target = find(s.pool, key)
    if target is None:
        return None
    old = disk_of_leaf(s, target.vdev, key)
    fault = next((f for f in v.faults if f.key == key), None)
    refused = suspension(v) or refusal(s, target, old)
    lost = effects(v, old)
    gone = bool(v.devices) and device_of(old, v.devices) is None
    failed = gone or target.vdev.state in FAILED
    ways = () if refused else tuple(sorted(_ways(v, target, old, lost), key=_last_if_refused))
    return SwapChoice(
        old,
        target.top.name,
        s.pool.guid or s.facts.properties.get("guid"),
        tuple(_found(v, target.vdev, old, fault, gone)),
        cause_of(v, target),
        redundancy_words(s),
        untouchable(s, old),
        lost,
        ways,
        gone,
        refused,
        failed=failed,
        faulty=failed or fault is not None or target.vdev.errors.total > 0,
        spared=bool(target.spares),
        advice=cable_advice(v, target),
    )


def begin(choice: SwapChoice, way: SwapWay, v: MachineView, name: str, now: float) -> Checklist:
    """The checklist of a swap that was confirmed; ``name`` is its id."""
    checklist = Checklist(
        name,
        choice.old.pool,
        choice.guid,
        now,
        choice.old,
        choice.vdev,
        way.mode,
        why=choice.found,
        new=way.new if way.mode == REPLACE_FIRST else None,
        spare=way.new if way.mode == SPARE_FIRST else None,
        spared=choice.spared or way.mode == SPARE_FIRST,
        along=choice.along,
        beside=tuple(
            replace(choice.old, name=effect.name, key=effect.key, pool=effect.pool, path="")
            for effect in choice.effects
            if effect.pool != choice.old.pool
        ),
        was_gone=choice.gone,
        around=around(v, choice.old),
        boot=v.boot,
    )
    return checklist.noting(now, "explain", f"begun with {choice.old.words}: {WAYS[way.mode]}")


def around(v: MachineView, old: SwapDisk) -> tuple[SwapDisk, ...]:
    """Every other disk that is on the machine: once for each leaf on it, or as it is."""
    leaves = (disk_of_leaf(s, leaf, key) for s in v.situations for key, leaf in leaves_of(s.pool))
    used = [disk for disk in leaves if device_of(disk, v.devices) is not None]
    wholes = {disk.whole for disk in used}
    unused = [disk_of(d) for d in v.devices if d.kind == "disk" and d.path not in wholes]
    return tuple(disk for disk in (*used, *unused) if disk.whole != old.whole)


def _last_if_refused(way: SwapWay) -> bool:
    return bool(way.refused)


def _found(
    v: MachineView, leaf: Vdev, old: SwapDisk, fault: DeviceFault | None, gone: bool
) -> Iterator[str]:
    """What speaks for a failure, and what for its cause."""
    note = f" ({leaf.note})" if leaf.note else ""
    yield f"{leaf.name} is {leaf.state}{note}"
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
    device = device_of(old, v.devices)
    smart = v.smart.get(device.path) if device else None
    if smart is not None:
        yield f"SMART: {smart.words()}"
    if fault is not None and fault.cause == "cable":
        yield "before buying a disk: reseat the disk and its cable; the checklist takes it back"


def _ways(
    v: MachineView, target: Target, old: SwapDisk, lost: tuple[Effect, ...]
) -> Iterator[SwapWay]:
    group = target.group
    if group is not None and group.kind == "replacing":
        yield _adopted(v, target)
        return
    yield from _with_free_disk(v, target, old)
    yield from _with_spare(v, target)
    yield _by_pulling(v.situation, target, lost)


def _adopted(v: MachineView, target: Target) -> SwapWay:
    """A replace that somebody else, or ZED, has begun."""
    group = target.group
    leaf = group.children[-1] if group else target.vdev
    key = next((k for k, each in leaves_of(v.situation.pool) if each is leaf), "")
    new = disk_of_leaf(v.situation, leaf, key)
    why = f"its replacement by {new.words} has begun already: the checklist goes on from there"
    return SwapWay(REPLACE_FIRST, why, new, begun=leaf.resilvering)


def _with_free_disk(v: MachineView, target: Target, old: SwapDisk) -> Iterator[SwapWay]:
    if partition_of(target) is not None:
        return  # a new disk has to be partitioned first
    s = v.situation
    free = spares(s.pool)
    for candidate in ranked(s.pool, target, s.facts):
        device = candidate.device
        if old.is_on(device):
            continue
        if candidate.usable and device.kind == "disk" and device.path not in free:
            new = disk_of(device)
            why = (
                f"{new.words} is free: replace with it now, and pull {target.vdev.name} once the"
                f" resilver is done. {kept_words(s, target)}"
            )
            yield SwapWay(REPLACE_FIRST, why, new)
            return


def _with_spare(v: MachineView, target: Target) -> Iterator[SwapWay]:
    if target.group is not None:
        return
    s = v.situation
    for path, spare in spares(s.pool).items():
        if unfit_spare(spare, target) is None:
            key = next((k for k, each in leaves_of(s.pool) if each is spare), "")
            new = disk_of_leaf(s, spare, key)
            why = (
                f"hot spare {new.words} stands in first; it returns once the new disk is filled."
                f" {kept_words(s, target)}. It takes two resilvers"
            )
            yield SwapWay(SPARE_FIRST, why, replace(new, whole=path))
            return


def _by_pulling(s: Situation, target: Target, lost: tuple[Effect, ...]) -> SwapWay:
    """Pull first: allowed where the disk is out already, or every pool on it can do without it."""
    reads = target.vdev.state not in FAILED
    if target.group is not None and stands_in(target):
        names = ", ".join(x.name for x in target.spares)
        return SwapWay(PULL_FIRST, f"{names} stands in for it: pull it, and insert a new one")
    refused = _cannot_pull(s, target, lost, reads)
    left = max(0, min(e.left for e in lost if e.vdev == target.top.name))
    why = (
        f"no other disk is needed: take it offline, pull it, insert a new one. Until the resilver"
        f" is done, {may_fail(left)} in {target.top.name}"
    )
    if not reads:
        why = "it is not read any more: pull it, and insert a new one"
    return SwapWay(PULL_FIRST, why, refused=refused)


def _cannot_pull(s: Situation, target: Target, lost: tuple[Effect, ...], reads: bool) -> str:
    along = [e.key for e in lost if e.pool == s.pool.name]
    if reads and (why := hindrance(s, target, along)):
        return f"{why}: wait for that resilver, or replace that device first"
    # What the disk no longer gives can't be lost by pulling it; another pool on it may still read.
    bad = [e for e in lost if e.left < 0 and (reads or e.key != target.key)]
    return "; ".join(effect.text for effect in bad)
