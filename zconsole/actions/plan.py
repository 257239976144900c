"""What an action would do, before anybody does it: the exact commands and their consequences.

A plan is made by a pure function from a ``Situation``. Its preconditions are checked when it is
made, and again by the executor on a fresh situation, because ZED or another operator may act on
the same pool at the same moment.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from zconsole.hardware.device import Device
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.hazards import hazards
from zconsole.pool.model import Pool, Scan, Vdev, Version
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.pool.topology import data_vdevs, is_taken


@dataclass(frozen=True, slots=True)
class Facts:
    """What a plan needs to know beyond the sample; everything may be unknown."""

    version: Version = ()
    """OpenZFS version of the kernel module, ``(2, 3, 9)``; empty when unknown."""
    features: Mapping[str, str] = field(default_factory=dict)
    """Feature name to disabled, enabled or active (``zpool get feature@…``)."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Pool properties as ``zpool get -Hp`` prints them."""
    parameters: Mapping[str, int] = field(default_factory=dict)
    """Module parameters that decide what a replace does to a running resilver."""
    devices: tuple[Device, ...] = ()
    """The machine's block devices, and any file or path asked for."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Leaf key to the pool GUID its label was read to hold; ``""``: not readable."""

    def has(self, feature: str) -> bool | None:
        """Whether a pool feature is enabled or active; None when that is not known."""
        state = self.features.get(feature)
        return None if state is None else state in ("enabled", "active")

    def disk(self, path: str) -> Device | None:
        """The disk, or file, that a path leads to, by any link of it or of a partition."""
        return next((d for d in self.devices if path == d.path or path in d.aliases), None)

    def named(self, path: str) -> Device | None:
        """The device that a path names: a partition by itself, else the whole disk, or a file."""
        disk = self.disk(path)
        parts = () if disk is None else disk.parts
        return next((part for part in parts if path in part.aliases), disk)

    def disks_under(self, device: Device) -> tuple[Device, ...]:
        """The disk that a device is, or is on; all of those that a stacked one is made of."""
        found = (self.disk(path) for path in (device.path, *device.below))
        return tuple(disk for disk in found if disk is not None and disk.kind == "disk")


@dataclass(frozen=True, slots=True)
class Situation:
    """A pool at one moment with the facts about its machine."""

    pool: Pool
    facts: Facts = Facts()
    t: float = 0.0
    """Epoch seconds of the sample."""
    suspended: bool = False
    """Whether the pool waits for a device; its sample is then the last one that could be had."""
    looked: float | None = None
    """Seconds of the steady clock when the newest sample of the pool was begun; None if unknown."""
    problem: str | None = None
    """Why that sample could not be had: all else here is older then."""

    def zpool(self, verb: str, *words: str, operands: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The argv of a zpool command on this pool, as ``zpool`` makes it."""
        return zpool(verb, *words, operands=(self.pool.name, *operands))

    @property
    def guid(self) -> str | None:
        """The pool's GUID; None where no source tells it."""
        return self.pool.guid or self.facts.properties.get("guid")

    @property
    def guids(self) -> frozenset[str]:
        """The pool's GUID, as the sample and ``zpool get`` have it; they may differ."""
        return frozenset(filter(None, (self.pool.guid, self.facts.properties.get("guid"))))

    @property
    def expands(self) -> bool:
        """Whether a device that comes online takes all of its disk: autoexpand is not off."""
        return self.facts.properties.get("autoexpand") != "off"

    def device_of(self, leaf: Vdev) -> Device | None:
        """The machine's device below a leaf; None, too, where its path leads to another one now."""
        device = self.facts.disk(leaf.path or "")
        if device is None or is_taken(leaf, self.pool.root, device.serial, device.wwn):
            return None
        return device

    @property
    def running(self) -> tuple[Scan, ...]:
        """The scans that run or are paused."""
        return tuple(scan for scan in self.pool.scans if scan.active)

    def active(self, function: str) -> Scan | None:
        """The running or paused scan of this function, else None."""
        return next((scan for scan in self.running if scan.function == function), None)


Check = Callable[[Situation], str | None]
"""Why something does not hold in a situation, in the operator's words; None when it holds."""


@dataclass(frozen=True, slots=True)
class Precondition:
    """Something that must hold when the plan is made and still when it runs."""

    text: str
    check: Check


@dataclass(frozen=True, slots=True)
class LightOrder:
    """A disk's light to switch; without ``device`` all that were switched on here."""

    on: bool
    device: Device | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a plan, or one light to switch."""

    argv: tuple[str, ...]
    why: str
    requires: tuple[Precondition, ...] = ()
    """Checked on a fresh situation just before this step."""
    skip: Check | None = None
    """Why this step is not needed, on a fresh situation; None: it is."""
    light: LightOrder | None = None
    """A light to switch instead of running ``argv`` (which then shows how by hand)."""
    window: ScrubWindow | None = None
    """The hours of a scrub to set instead, in the same way; empty hours: at any hour again."""

    @property
    def command(self) -> str:
        """The command quoted for a shell, to read or to run by hand."""
        return shlex.join(self.argv)


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """How an action ended."""

    ok: bool
    text: str


Follow = Callable[[Situation], ActionOutcome | None]
"""The outcome once a situation shows the action's end, None while it is under way."""


@dataclass(frozen=True, slots=True)
class ActionPlan:
    """Everything an operator must know before saying yes."""

    action: str
    """A word for the audit log: replace, scrub, detach."""
    title: str
    steps: tuple[Step, ...]
    where: tuple[str, ...] = ()
    """The disks its commands name, each with its bay and serial number; set by ``decide``."""
    doubts: tuple[str, ...] = ()
    """Why another device may be the one that is meant."""
    consequences: tuple[str, ...] = ()
    not_undone: tuple[str, ...] = ()
    """What this will not undo, or cannot be undone."""
    warnings: tuple[str, ...] = ()
    hazards: tuple[str, ...] = ()
    """Known bugs of this OpenZFS that its commands meet; set by ``decide``."""
    preconditions: tuple[Precondition, ...] = ()
    needs_typed: str | None = None
    """The name to type before a destructive or one-way plan may run."""
    refused: str | None = None
    """Why this cannot be done now; a refused plan is never run."""
    alternatives: tuple[str, ...] = ()
    """What can be done instead, and what it costs."""
    follow: Follow | None = None
    begins: str = ""
    """What its commands only begin and ``follow`` waits for: ``resilver``; empty: nothing."""
    supersedes: bool = False
    """Whether nobody wants to hear how earlier plans of the same action end: this one ends them."""
    saves_evidence: bool = False
    """Whether counters and the error list go to the audit log first."""
    pool: str = ""
    """The name of the pool; ``decide`` sets it, and …"""
    guid: str | None = None
    """… its GUID. None: no source tells it."""
    urgent: Callable[[Situation], bool] = lambda _: False
    """Whether it runs, in this situation, even where no log can be written or the newest sample of
    the pool gave nothing: what brings a pool back must never be refused for that."""

    @property
    def checks(self) -> tuple[str, ...]:
        """What must hold, in words: of the plan and of each step, everything once."""
        steps = (need.text for step in self.steps for need in step.requires)
        return tuple(dict.fromkeys((*(need.text for need in self.preconditions), *steps)))

    @property
    def identity(self) -> dict[str, str | None]:
        """What each line of the audit log says of it."""
        return {"action": self.action, "title": self.title, "pool": self.pool, "guid": self.guid}


def failing(preconditions: tuple[Precondition, ...], situation: Situation) -> str | None:
    """The reason of the first precondition that does not hold, None when all do."""
    for precondition in preconditions:
        if reason := precondition.check(situation):
            return reason
    return None


def decide(plan: ActionPlan, situation: Situation) -> ActionPlan:
    """The plan for this very pool, refused with the first precondition that fails now.

    A step's own requirements count for the first step only: what later steps need is made by
    the steps before them.
    """
    if plan.refused is not None:
        return plan
    same = same_pool(situation.pool.name, situation.guid)
    needs = (same, *plan.preconditions)
    first = plan.steps[0].requires if plan.steps else ()
    return dataclasses.replace(
        plan,
        hazards=_hazards(plan, situation),
        where=places({word for step in plan.steps for word in step.argv}, situation),
        pool=situation.pool.name,
        guid=situation.guid,
        preconditions=needs,
        refused=failing(needs + first, situation),
        follow=None if plan.follow is None else _following(plan.follow, same),
    )


def _hazards(plan: ActionPlan, situation: Situation) -> tuple[str, ...]:
    kinds = {vdev.kind for vdev in data_vdevs(situation.pool.root)}
    commands = (" ".join(step.argv[1:]) for step in plan.steps)
    found = (
        text for command in commands for text in hazards(command, situation.facts.version, kinds)
    )
    return tuple(dict.fromkeys(found))


def same_pool(name: str, guid: str | None) -> Precondition:
    """The pool of this name still has this GUID: another one may be imported under the name."""
    if guid is None:
        text = f"{name}: GUID unknown, compared by name only"
        return Precondition(text, lambda _: None)

    def _check(now: Situation) -> str | None:
        other = now.guids - {guid}
        if not other:
            return None
        return another_pool(name, ", ".join(sorted(other)), guid)

    return Precondition(f"{name} is the same pool: GUID {guid}", _check)


def another_pool(name: str, found: str, guid: str) -> str:
    """That a pool of this name has the GUID ``found`` now, not that of the plan."""
    return f"another pool is named {name} now: GUID {found}, not {guid}; plan again"


def _following(follow: Follow, same: Precondition) -> Follow:
    """The same, and the end of it once another pool has the name."""

    def _ended(now: Situation) -> ActionOutcome | None:
        why = same.check(now)
        return follow(now) if why is None else ActionOutcome(False, why)

    return _ended


def refuse(
    action: str, title: str, situation: Situation, why: str, *alternatives: str
) -> ActionPlan:
    """A plan that cannot be: it has no steps, only the reason and what can be done instead."""
    name = situation.pool.name
    return ActionPlan(action, title, (), pool=name, refused=why, alternatives=alternatives)


def zpool(verb: str, *words: str, operands: tuple[str, ...]) -> tuple[str, ...]:
    """The argv of a zpool command; ``--`` stands before operands that look like options.

    getopt(3), which zpool uses for every verb, ends its options there.
    """
    guard = ("--",) if any(operand.startswith("-") for operand in operands) else ()
    return ("zpool", verb, *words, *guard, *operands)


MOST_PLACES = 12
"""Disks that are named; more than that nobody looks for at once."""


def places(words: Collection[str], situation: Situation) -> tuple[str, ...]:
    """``sda: Slot 05, serial ZC1A2B3C`` for each disk that these words of commands name.

    Empty where nothing tells the place nor the serial number.
    """
    found = tuple(dict.fromkeys(_places(words, situation)))
    more = (f"and {len(found) - MOST_PLACES} more",) if len(found) > MOST_PLACES else ()
    return (*found[:MOST_PLACES], *more)


def _places(words: Collection[str], situation: Situation) -> Iterator[str]:
    told: set[Device] = set()
    devices = situation.facts.devices
    for leaf in situation.pool.root.leaves():
        path, device = leaf.path or leaf.name, situation.device_of(leaf)
        if not any(name in words for name in (leaf.guid, path, path.removesuffix("-part1"))):
            continue
        told |= {device} if device is not None else set()
        # The sample remembers a disk that is gone; else what the machine tells now.
        known = leaf.disk or (LeafDisk() if device is None else _of_device(device))
        serial = leaf.disk.serial if leaf.disk and device is None else ""
        out = bool(serial and devices) and all(each.serial != serial for each in devices)
        yield from _said(leaf.name, known, " (not there now)" * out)
    for device in devices:
        names = {device.path, device.node, device.locate, *device.aliases}
        if device not in told and names & set(words):
            yield from _said(device.path.rpartition("/")[2], _of_device(device))


def called(path: str, situation: Situation) -> str:
    """How people call the disk of this path: see ``LeafDisk.called``; of others the path."""
    device = next((d for d in situation.facts.devices if d.path == path), None)
    return _of_device(device).called(path) if device is not None and device.bay else path


def _said(name: str, disk: LeafDisk, more: str = "") -> Iterator[str]:
    """Its place and serial number, where those tell more than its name; ``more`` behind them."""
    if text := disk.words(name if disk.bay == name else ""):
        yield f"{name}: {text}{more}"


def _of_device(device: Device) -> LeafDisk:
    return LeafDisk(bay=device.bay, serial=device.serial)
