"""Plans of actions: the exact commands and their consequences, before anything runs.

A plan is made by a pure function from a ``Situation``. Its preconditions are checked when it is
made, and again by the executor on a fresh situation, because ZED or another operator may change the
same pool at the same time.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from zconsole.hardware.device import Device
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.hazards import hazards
from zconsole.pool.model import MULTIHOST, Pool, Scan, Vdev, Version, data_vdevs, path_is_reused
from zconsole.pool.redundancy import REPAIRS
from zconsole.pool.scrub_window import ScrubWindow


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that a plan needs beyond the sample; each may be unknown."""

    version: Version = ()
    """OpenZFS version of the kernel module, ``(2, 3, 9)``; empty when unknown."""
    features: Mapping[str, str] = field(default_factory=dict)
    """State of each pool feature: disabled, enabled or active (``zpool get feature@…``)."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Pool properties as ``zpool get -Hp`` prints them."""
    parameters: Mapping[str, int] = field(default_factory=dict)
    """Module parameters that decide what a replace does to a running resilver."""
    devices: tuple[Device, ...] = ()
    """The machine's block devices, and any file or path named by the operator."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The pool GUID on each leaf's label, by leaf key; ``""`` if not readable."""

    def has(self, feature: str) -> bool | None:
        """Return whether a pool feature is enabled or active; None when unknown."""
        state = self.features.get(feature)
        return None if state is None else state in ("enabled", "active")

    def disk(self, path: str) -> Device | None:
        """Return the disk or file of a path, which may be any link to it or its partitions."""
        return next((d for d in self.devices if path == d.path or path in d.aliases), None)

    def named(self, path: str) -> Device | None:
        """Return the device that a path names: a partition, else the whole disk or a file."""
        disk = self.disk(path)
        parts = () if disk is None else disk.parts
        return next((part for part in parts if path in part.aliases), disk)

    def disks_under(self, device: Device) -> tuple[Device, ...]:
        """Return the disks below a device: itself, its disk, or all disks of a stacked device."""
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
    """Whether the pool is suspended; its sample is then the last one available."""
    looked: float | None = None
    """Start of the pool's newest sample in seconds of the steady clock; None if unknown."""
    problem: str | None = None
    """Why the newest sample failed: everything else here is older then."""
    left: float | None = None
    """Seconds left of the running resilver or rebuild; None if unknown, or none runs."""

    def zpool(self, verb: str, *words: str, operands: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the argv of a zpool command on this pool; see ``zpool`` for the rules."""
        return zpool(verb, *words, operands=(self.pool.name, *operands))

    @property
    def guid(self) -> str | None:
        """The pool's GUID; None if unknown."""
        return self.pool.guid or self.facts.properties.get("guid")

    @property
    def guids(self) -> frozenset[str]:
        """The pool's GUIDs from the sample and from ``zpool get``, which may differ."""
        return frozenset(filter(None, (self.pool.guid, self.facts.properties.get("guid"))))

    @property
    def expands(self) -> bool:
        """Whether a device that comes online grows to its whole disk: autoexpand is not off."""
        # Unknown counts as on, as a device's path works in both cases (see ``disk_path``).
        return self.facts.properties.get("autoexpand") != "off"

    def device_of(self, leaf: Vdev) -> Device | None:
        """Return the device below a leaf; None if it is gone or the path leads to another disk."""
        device = self.facts.disk(leaf.path or "")
        if device is None or path_is_reused(leaf, self.pool.root, device.serial, device.wwn):
            return None
        return device

    @property
    def running(self) -> tuple[Scan, ...]:
        """The running and paused scans."""
        return tuple(scan for scan in self.pool.scans if scan.active)

    @property
    def may_be_elsewhere(self) -> bool:
        """Whether multihost suspended the pool: another host may have imported it."""
        return self.suspended and self.pool.suspension == MULTIHOST

    @property
    def repairing(self) -> tuple[Scan, ...]:
        """The running resilvers and rebuilds."""
        return tuple(scan for scan in self.running if scan.function in REPAIRS)

    @property
    def waiting(self) -> tuple[Vdev, ...]:
        """The devices that wait for the next resilver."""
        return tuple(leaf for leaf in self.pool.root.leaves() if leaf.awaiting_resilver)

    @property
    def repaired(self) -> Scan | None:
        """The resilver or rebuild that ended last; None if none has."""
        ended = (scan for scan in self.pool.scans if scan.function in REPAIRS and scan.end)
        return max(ended, key=lambda scan: scan.end or 0.0, default=None)

    def works(self, kind: str, vdev: str | None = None) -> bool:
        """Return whether work of this kind (a removal, an expansion) runs or is paused.

        ``vdev``: the only top-level vdev that counts.
        """
        return any(
            work.kind == kind and work.state in ("running", "paused") and vdev in (None, work.vdev)
            for work in self.pool.activities
        )

    def active(self, function: str) -> Scan | None:
        """Return the running or paused scan of this function, else None."""
        return next((scan for scan in self.running if scan.function == function), None)


Check = Callable[[Situation], str | None]
"""Returns why a condition does not hold, in the operator's words; None if it holds."""


@dataclass(frozen=True, slots=True)
class Precondition:
    """A condition that must hold when the plan is made and when it runs."""

    text: str
    check: Check


@dataclass(frozen=True, slots=True)
class LightOrder:
    """An order to switch a disk's light; without ``device``, all lights that zconsole lit."""

    on: bool
    device: Device | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a plan, or a light or scrub window to set."""

    argv: tuple[str, ...]
    why: str
    requires: tuple[Precondition, ...] = ()
    """Conditions checked on a fresh situation just before this step."""
    skip: Check | None = None
    """Returns why this step is not needed in a fresh situation; None if it is needed."""
    light: LightOrder | None = None
    """A light to switch instead of running ``argv``, which then shows the manual command."""
    window: ScrubWindow | None = None
    """A scrub window to set instead of running ``argv``; empty hours remove it."""

    @property
    def command(self) -> str:
        """The command quoted for a shell, to read or to run by hand."""
        return shlex.join(self.argv)


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """How an action ended."""

    ok: bool
    text: str
    passes: bool = False
    """Whether it is a state that may pass, such as paused, rather than an end that stays true."""
    unused: tuple[str, ...] = ()
    """Bays whose disks the pool no longer uses, as they are replaced."""


Follow = Callable[[Situation], ActionOutcome | None]
"""Returns the outcome once a situation shows the action's end; None until then."""


@dataclass(frozen=True, slots=True)
class ActionPlan:
    """Everything an operator must know before confirming an action."""

    action: str
    """The action's name in the audit log: replace, scrub, detach."""
    title: str
    steps: tuple[Step, ...]
    where: tuple[str, ...] = ()
    """The disks in its commands, with bay and serial number; set by ``decide``."""
    doubts: tuple[str, ...] = ()
    """Reasons to think that another device is meant."""
    consequences: tuple[str, ...] = ()
    not_undone: tuple[str, ...] = ()
    """Effects that can't be undone."""
    warnings: tuple[str, ...] = ()
    hazards: tuple[str, ...] = ()
    """Known bugs of this OpenZFS release that its commands may trigger; set by ``decide``."""
    preconditions: tuple[Precondition, ...] = ()
    needs_typed: str | None = None
    """The name to type before a destructive or one-way plan may run."""
    refused: str | None = None
    """Why this can't be done now; a refused plan is never run."""
    alternatives: tuple[str, ...] = ()
    """Alternatives, and what they cost."""
    follow: Follow | None = None
    begins: str = ""
    """The work that its commands start and ``follow`` waits for: ``resilver``; empty if none."""
    predicted: float | None = None
    """Seconds that this work is likely to take in all; None if unknown."""
    supersedes: bool = False
    """Whether it ends earlier plans of the same action, whose outcome is then not announced."""
    saves_evidence: bool = False
    """Whether error counters and the error list are saved to the audit log first."""
    pool: str = ""
    """Name of the pool; set by ``decide``."""
    guid: str | None = None
    """GUID of the pool, None if unknown; set by ``decide``."""
    urgent: Callable[[Situation], bool] = lambda _: False
    """Returns whether it runs without a writable audit log and without a successful newest sample.

    A command that brings a pool back must never be refused for these.
    """

    @property
    def checks(self) -> tuple[str, ...]:
        """Texts of all preconditions, of the plan and of each step, without duplicates."""
        steps = (need.text for step in self.steps for need in step.requires)
        return tuple(dict.fromkeys((*(need.text for need in self.preconditions), *steps)))

    @property
    def identity(self) -> dict[str, str | None]:
        """Fields that identify the plan in each record of the audit log."""
        return {"action": self.action, "title": self.title, "pool": self.pool, "guid": self.guid}


def failing(preconditions: tuple[Precondition, ...], situation: Situation) -> str | None:
    """Return the reason of the first precondition that fails, or None."""
    for precondition in preconditions:
        if reason := precondition.check(situation):
            return reason
    return None


def decide(plan: ActionPlan, situation: Situation) -> ActionPlan:
    """Return the plan bound to this pool, refused if a precondition fails now.

    Only the first step's own requirements are checked: the later steps' are brought about by the
    steps before them.
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
    """Return the known bugs that the plan's commands may trigger in this OpenZFS release."""
    kinds = {vdev.kind for vdev in data_vdevs(situation.pool.root)}
    acts = (*(" ".join(step.argv[1:]) for step in plan.steps), plan.action)
    found = (text for act in acts for text in hazards(act, situation.facts.version, kinds))
    return tuple(dict.fromkeys(found))


def same_pool(name: str, guid: str | None) -> Precondition:
    """Require that the pool of this name has this GUID: another one may be imported under it."""
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
    """Return the message that the pool of this name has the GUID ``found``, not the plan's."""
    return f"another pool is named {name} now: GUID {found}, not {guid}; plan again"


def _following(follow: Follow, same: Precondition) -> Follow:
    """Return a ``Follow`` that also ends once another pool has the name."""

    def _ended(now: Situation) -> ActionOutcome | None:
        why = same.check(now)
        return follow(now) if why is None else ActionOutcome(False, why)

    return _ended


def refuse(
    action: str, title: str, situation: Situation, why: str, *alternatives: str
) -> ActionPlan:
    """Return a refused plan without steps: only the reason and alternatives."""
    name = situation.pool.name
    return ActionPlan(action, title, (), pool=name, refused=why, alternatives=alternatives)


def zpool(verb: str, *words: str, operands: tuple[str, ...]) -> tuple[str, ...]:
    """Return the argv of a zpool command; ``--`` stands before operands that look like options.

    getopt(3), which zpool uses for every verb, ends its options there.
    """
    guard = ("--",) if any(operand.startswith("-") for operand in operands) else ()
    return ("zpool", verb, *words, *guard, *operands)


MOST_PLACES = 12
"""Number of disks named in a plan; the rest is counted."""


def places(words: Collection[str], situation: Situation) -> tuple[str, ...]:
    """Return ``sda: Slot 05, serial ZC1A2B3C`` for each disk named in these command words.

    A disk is left out if neither place nor serial number is known, unless it is named by GUID.
    """
    found = tuple(dict.fromkeys(_places(words, situation)))
    more = (f"and {len(found) - MOST_PLACES} more",) if len(found) > MOST_PLACES else ()
    return (*found[:MOST_PLACES], *more)


def _places(words: Collection[str], situation: Situation) -> Iterator[str]:
    """Yield the place and serial number of pool leaves, then of other devices, among the words."""
    told: set[Device] = set()
    devices = situation.facts.devices
    for leaf in situation.pool.root.leaves():
        path, device = leaf.path or leaf.name, situation.device_of(leaf)
        # Commands name a whole disk, the sample the partition that zpool made on it.
        if not any(name in words for name in (leaf.guid, path, path.removesuffix("-part1"))):
            continue
        told |= {device} if device is not None else set()
        # The sample remembers a disk that is gone; otherwise use the machine's device.
        known = leaf.disk or (LeafDisk() if device is None else _of_device(device))
        serial = leaf.disk.serial if leaf.disk and device is None else ""
        out = bool(serial and devices) and all(each.serial != serial for each in devices)
        yield from _said(leaf.name, known, " (not there now)" * out, leaf.guid in words)
    for device in devices:
        names = {device.path, device.node, device.locate, *device.aliases}
        if device not in told and names & set(words):
            yield from _said(device.path.rpartition("/")[2], _of_device(device))


def called(path: str, situation: Situation) -> str:
    """Return the displayed name of a disk (``LeafDisk.called``); of other devices the path."""
    device = next((d for d in situation.facts.devices if d.path == path), None)
    return _of_device(device).called(path) if device is not None and device.bay else path


def _said(name: str, disk: LeafDisk, more: str = "", by_guid: bool = False) -> Iterator[str]:
    """Yield a disk's place and serial number if they add to its name; ``more`` is appended.

    ``by_guid``: the command has its GUID in place of its name.
    """
    text = disk.words(name if disk.bay == name else "")
    if by_guid or text:
        called = f"{name} by its GUID" if by_guid else name
        yield f"{called}: {text}{more}" if text else called


def _of_device(device: Device) -> LeafDisk:
    return LeafDisk(bay=device.bay, serial=device.serial)
