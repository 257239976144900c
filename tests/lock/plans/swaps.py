"""Guided swaps on the simulated shelf: each stage as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from tests.lock.case import digest
from tests.lock.plans import adapter
from tests.lock.plans.table import safe
from tests.unit.swap.playing import EMPTY, NEW, OLD, SMALL, Play, fresh
from zconsole.actions.plan import Situation
from zconsole.hardware.device import Contents, Device
from zconsole.pool.model import Vdev
from zconsole.scan_report.resilver_time import member_duration, paces
from zconsole.sim import commands, lifecycle
from zconsole.sim.build import Build
from zconsole.sim.disk import CANT_OPEN, FAULTED, SSD_400G, Leaf
from zconsole.sim.source import World
from zconsole.sim.state import PoolState
from zconsole.swap.choice import SwapChoice, choose
from zconsole.swap.disk import PULL_FIRST, REPLACE_FIRST, SPARE_FIRST
from zconsole.swap.report import explained, markdown
from zconsole.swap.several import in_turn, together, urgent_first
from zconsole.swap.stage import SwapStage
from zconsole.swap.steps import listed

DETAILS = (
    *(f"{room}{word}: " for room in ("    ", "      ") for word in adapter.DETAILS),
    *("- 20", "  - `", "      is followed", "    is followed", "  undone: "),
)
"""Prefixes of lines that are not kept for every stage and report."""
WRONG, OTHER = "Slot 06", "Slot 08"


def swaps() -> Iterator[tuple[str, Callable[[bool], Iterator[str]]]]:
    """Yield all swaps, each with its name; with True, their plans are complete."""
    for name, play in _SWAPS.items():
        yield f"played/{name}", lambda whole, play=play: _told(play, whole)
    for scenario in ("failed-disk", "healthy", "hot-spare", "six-disk-swap", "flaky", "draid"):
        yield f"choices/{scenario}", lambda _, scenario=scenario: _choices(scenario)


@dataclass
class Told(Play):
    """A swap that records what is shown, whenever that changes."""

    said: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    marked: bool = True
    """Whether zpool already shows a new resilver and the disk being filled."""

    def situation(self, pool: PoolState) -> Situation:
        """Return a pool as zpool shows it."""
        found = super().situation(pool)
        if self.marked:
            return found
        pool_now = replace(found.pool, root=_unmarked(found.pool.root), scans=())
        return replace(found, pool=pool_now)

    def choice(self, bay: str = OLD) -> SwapChoice:
        """Record what the user is told before the swap begins."""
        found = super().choice(bay)
        self.said += _chosen(found)
        return found

    def look(self) -> SwapStage:
        """Record the stage unless it is the same as the last one."""
        stage = super().look()
        lines = list(_shown(stage))
        if lines != self.before:
            self.said += (f"+{self.elapsed:.0f} s", *lines)
        self.before = lines
        return stage


def _told(play: Callable[[Told], object], whole: bool) -> Iterator[str]:
    """Return everything shown; without ``whole``, each line once, and only the command of plans."""
    told = Told()
    play(told)
    report = [] if told.guide is None else markdown(told.checklist).splitlines()
    lines = [safe(line) for line in (*told.said, *report)]
    if whole:
        yield from lines
    else:
        yield from dict.fromkeys(line for line in lines if not line.startswith(DETAILS))
        yield f"sha256 {digest(chr(10).join(lines))} with all details"


def _shown(stage: SwapStage) -> Iterator[str]:
    """Yield the lines of a stage, for people."""
    yield f"{'!!! ' if stage.alarm else ''}{stage.title} [{stage.step}]"
    parts = {"text": stage.text, "warning": stage.warnings, "undone": stage.undone}
    parts |= {"remember": stage.reminders, "then": tuple(disk.words for disk in stage.then)}
    yield from (f"  {head}: {text}" for head, texts in parts.items() for text in texts)
    if stage.brief:
        yield f"  in short: {stage.brief}"
    if stage.waits:
        yield f"  waits for {'' if stage.deferred else 'its own '}{_numberless(stage.waits)}"
    if stage.plan is not None:
        yield from (f"  {line}" for line in adapter.lines(stage.plan))
    for answer in stage.answers:
        typed = f" (type {answer.typed})" if answer.typed else ""
        means = f": {answer.means}" if answer.means else ""
        yield f"  answer {answer.name}{typed}: {answer.text}{means}"
    if stage.back is not None:
        yield f"  back: {stage.back.text}{' (closes it)' if stage.back.closes else ''}"
        if stage.back.plan is not None:
            yield from (f"    {line}" for line in adapter.lines(stage.back.plan))
    undo = stage.undo or "Afterwards: Back "
    yield from (f"  {text}" for text in (stage.final, undo) if text)
    if stage.over:
        yield "  over"


def _numberless(text: str) -> str:
    """Return a waiting text with its numbers masked; they would change at each look."""
    return "".join("#" if mark.isdigit() else mark for mark in text)


def _chosen(choice: SwapChoice) -> Iterator[str]:
    for heading, lines in explained(choice).items():
        yield f"{heading}:"
        yield from (f"  {line}" for line in lines)
    for way in choice.ways:
        yield f"steps of {way.mode}: {', '.join(listed(choice.checklist(way)))}"


def _choices(scenario: str) -> Iterator[str]:
    """Yield what is shown before a swap of each kind of device, and of several at once."""
    play = Told(world=World(scenario, 7))
    view = play.view()
    for target in adapter.unlike(view.situation):
        found = None if target.vdev.children else choose(view, target.key)
        yield f"-- {target.name}"
        yield from map(safe, () if found is None else _chosen(found))
    keys = [str(leaf.guid) for leaf in play.pool.leaves()][:2]
    targets = urgent_first(view, filter(None, map(view.target, keys)))
    known = paces(view.pool.root, view.pool.scans)
    estimates = {target.key: member_duration(target.top, known) for target in targets}
    ways = {"one after the other": in_turn, "together": together}
    found = [(how, way(view, targets, estimates)) for how, way in ways.items()]
    if not (found[1][1].refused or found[1][1].doubtful):
        found.reverse()
    for how, order in found:
        yield f"-- two disks, {how}: {order.refused or 'possible'}"
        yield from (safe(f"  {text}") for text in order.text)


def _right(told: Told) -> None:
    """Pull the old disk first; everything goes well."""
    told.begin()
    told.do()
    told.exchanged()
    told.do()
    told.until("report")


def _lit(told: Told) -> None:
    told.lights = True
    told.begin()
    told.do()
    told.do()
    told.back()
    told.do()
    told.wait(5 * 3600)
    told.hands.pull(OLD)
    told.look()
    told.hands.insert(NEW, OLD)
    told.do()
    told.until("light-off")
    told.do()
    told.answer("no-scrub")


def _replaced_first(told: Told) -> None:
    """Fill a free disk first; a wrong disk is pulled on the way."""
    told.hands.insert(NEW, EMPTY)
    told.begin(REPLACE_FIRST)
    told.do()
    told.until("pull")
    told.hands.pull(EMPTY)
    told.look()
    told.hands.insert(1, EMPTY)
    told.do()
    told.refilled()
    told.hands.pull(OLD)
    told.look()
    told.answer("no-scrub")


def _spared(told: Told) -> None:
    told.pool.spares.append(fresh())
    told.begin(SPARE_FIRST)
    told.do()
    told.until("offline")
    told.do()
    told.exchanged()
    told.do()
    told.answer("no-wait")


def _spared_unmarked(told: Told) -> None:
    """Use a spare; its resilver is not visible at first."""
    told.pool.spares.append(fresh())
    told.begin(SPARE_FIRST)
    told.do()
    told.marked = False
    for seconds in (1.0, 10.0, 60.0):
        told.look()
        told.wait(seconds)


def _unmarked(vdev: Vdev) -> Vdev:
    children = tuple(map(_unmarked, vdev.children))
    return vdev._replace(children=children, resilvering=False, unfilled=None)


def _spared_already(told: Told) -> None:
    spare = fresh()
    told.pool.spares.append(spare)
    commands.replace(told.pool, str(told.leaf().guid), str(spare.guid))
    lifecycle.lose(told.pool, told.leaf(), state=FAULTED, aux=11)
    told.begin()
    told.exchanged()


def _adopted(told: Told) -> None:
    """Adopt a replace that somebody else has begun."""
    told.hands.insert(NEW, EMPTY)
    commands.replace(told.pool, str(told.leaf().guid), str(told.pool.host.shelf[0].guid))
    told.begin()
    told.until("pull")


def _gone(told: Told) -> None:
    """Swap a disk that the machine has already lost, so that its pull cannot be seen."""
    old = told.leaf()
    lifecycle.lose(told.pool, old, CANT_OPEN, aux=1)
    told.begin()
    told.answer("pulled")
    told.pool.host.drawer.append(old)
    told.hands.insert(NEW, OLD)
    told.do()
    told.until("scrub")


def _backed_out(told: Told) -> None:
    told.begin()
    told.do()
    stage = told.back()
    while not stage.back or not stage.back.closes:
        told.wait(20.0)
        stage = told.look()
    told.back()


def _backed_out_late(told: Told) -> None:
    """Detach the new disk while it is being filled."""
    told.hands.insert(NEW, EMPTY)
    told.begin(REPLACE_FIRST)
    told.do()
    told.back()


def _put_back(told: Told) -> None:
    """Put the same disk back; before it, one that is too small; later, use another bay."""
    told.pulled()
    told.look()
    told.hands.insert(SMALL, OLD)
    told.look()
    told.hands.pull(OLD)
    told.look()
    told.hands.insert(NEW, EMPTY)
    told.look()
    told.hands.pull(EMPTY)
    told.look()
    told.hands.insert(len(told.hands.drawer()) - 3, OLD)
    told.look()


def _same_again(told: Told) -> None:
    told.pulled()
    told.look()
    told.hands.insert(2, OLD)
    told.do()
    told.until("scrub")


def _elsewhere(told: Told) -> None:
    told.pulled()
    told.look()
    told.hands.insert(NEW, EMPTY)
    told.look()
    told.answer("elsewhere")
    told.do()


def _unseen(told: Told) -> None:
    """Swap on a machine that does not show the pull."""
    told.begin()
    told.do()
    told.answer("pulled")
    told.answer("same")


def _wrong(told: Told) -> None:
    """Pull a wrong disk while the right one is already out; both come back."""
    told.pulled()
    told.look()
    told.hands.pull(WRONG)
    told.look()
    told.hands.insert(len(told.hands.drawer()) - 1, WRONG)
    told.look()
    told.run_alarm()
    told.refilled()
    told.hands.insert(NEW, OLD)
    told.do()


def _meant(told: Told) -> None:
    told.begin()
    told.do()
    told.hands.pull(WRONG)
    told.look()
    told.answer("meant")


def _two_wrong(told: Told) -> None:
    """Pull so many wrong disks that the pool is suspended."""
    told.begin()
    told.do()
    for bay in (WRONG, OTHER, "Slot 05"):
        told.hands.pull(bay)
        told.wait(1.0)
        told.look()
    for bay in ("Slot 05", OTHER, WRONG):
        told.hands.insert(len(told.hands.drawer()) - 1, bay)
        told.wait(1.0)
        told.look()


def _another_fails(told: Told) -> None:
    """Let another disk fail before the old one is offline, and again during the resilver."""
    told.begin()
    lifecycle.lose(told.pool, told.leaf("Slot 01"), FAULTED, aux=11)
    told.look()


def _fails_while_filled(told: Told) -> None:
    told.pulled()
    told.look()
    told.hands.insert(NEW, OLD)
    told.do()
    lifecycle.lose(told.pool, told.leaf("Slot 01"), FAULTED, aux=11)
    told.wait(60.0)
    told.look()
    lifecycle.lose(told.pool, told.leaf("Slot 02"), FAULTED, aux=11)
    told.wait(60.0)
    told.look()


def _used(told: Told) -> None:
    """Insert a new disk that holds data, is in use, or has another sector size."""
    told.pulled()
    told.look()
    told.hands.insert(NEW, OLD)
    for changes in (
        {"contents": Contents(("ext4",), "other")},
        {"mounted": ("/srv",)},
        {"logical": 16384, "physical": 16384},
        {"unnamed": True},
        {"serial": ""},
    ):
        told.devices = _changed(changes)
        told.look()


def _changed(changes: Mapping[str, object]) -> Callable[[tuple[Device, ...]], tuple[Device, ...]]:
    return lambda found: tuple(replace(d, **changes) if d.bay == OLD else d for d in found)


def _shared(told: Told, *bays: str) -> None:
    """Create a second pool on partitions of the same disks."""
    make = Build(3, "fast", told.pool.start)
    leaves = make.leaves(len(bays), SSD_400G)
    second = make.pool([make.mirror(leaves, fill=0.01)], host=told.pool.host)
    for bay, leaf in zip(bays, leaves, strict=True):
        _partition(told, bay, 2, leaf)
    second.t = told.pool.t
    told.pool.host.shelf = []
    _partition(told, OLD, 1, told.leaf())
    told.world.pools = (told.pool, second)


def _partition(told: Told, bay: str, number: int, leaf: Leaf) -> None:
    bits = 0xFF_FFFF_FFFF  # of a device's GUID; they are also its World Wide Name
    disk = told.leaf(bay)
    leaf.guid = leaf.guid & ~bits | disk.guid & bits
    leaf.path = f"/dev/disk/by-id/{disk.devid}-part{number}"
    leaf.name, leaf.devid = f"{disk.devid}-part{number}", disk.devid
    leaf.slot, leaf.device = disk.slot, f"{disk.device[:-1]}{number}"


def _two_pools(told: Told) -> None:
    _shared(told, OLD, OTHER)
    told.begin(PULL_FIRST)
    told.do()
    told.do()
    told.exchanged()
    told.answer("no-scrub")


def _two_pools_back(told: Told) -> None:
    _shared(told, OLD, OTHER)
    told.begin(PULL_FIRST)
    told.do()
    told.do()
    told.back()
    told.back()


def _lone_pool(told: Told) -> None:
    """Plan a pull that would cost another pool its data."""
    _shared(told, OLD)
    told.choice()


def _given_up(told: Told) -> None:
    """Give up with the disk offline and the light on."""
    told.lights = True
    told.begin()
    told.do()
    told.do()
    told.hands.pull(OLD)
    stage = told.look()
    assert told.guide is not None
    told.guide.close(told.now, stage.undone)
    told.look()


def _absent(told: Told) -> None:
    """Export the pool, then import it under another name."""
    told.begin()
    told.do()
    assert told.guide is not None
    told.said += _shown(told.guide.look(None, told.now))
    told.pool.name = "bowl"
    told.look()


_SWAPS: Mapping[str, Callable[[Told], object]] = {
    "the right way": _right,
    "with lights": _lit,
    "replaced first": _replaced_first,
    "a hot spare first": _spared,
    "a hot spare not marked yet": _spared_unmarked,
    "a hot spare already": _spared_already,
    "begun by somebody else": _adopted,
    "a disk that is gone": _gone,
    "backed out": _backed_out,
    "backed out while it is filled": _backed_out_late,
    "disks that do not fit": _put_back,
    "the same disk again": _same_again,
    "another bay": _elsewhere,
    "a pull that nothing shows": _unseen,
    "a wrong disk": _wrong,
    "a wrong disk that was meant": _meant,
    "wrong disks that suspend the pool": _two_wrong,
    "another disk fails before": _another_fails,
    "another disk fails while it is filled": _fails_while_filled,
    "a new disk in use": _used,
    "two pools on the disk": _two_pools,
    "two pools, and back": _two_pools_back,
    "a pool without redundancy on the disk": _lone_pool,
    "given up": _given_up,
    "an absent pool": _absent,
}
