"""Adding a vdev, log, cache or spare to a pool (zpool-add(8); zpool_do_add in zpool_main.c).

``-f`` is never used: what zpool would refuse is refused here, with alternatives. Redundancy is
required even where zpool no longer checks it, as in a pool whose vdevs don't match each other. The
plan has no step with ``zpool add -n``, as zpool makes the same checks before it touches a disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

from zconsole.actions import conditions as must
from zconsole.actions.candidates import judge_new
from zconsole.actions.follow import leaf_on, when
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide, refuse
from zconsole.actions.remove import NO_RAIDZ, unremovable
from zconsole.actions.target import failed
from zconsole.hardware.device import Device
from zconsole.keyed_text import KeyedText
from zconsole.pool.balance import Balance
from zconsole.pool.health import LABELS, least_bytes, too_small
from zconsole.pool.model import Vdev, data_vdevs
from zconsole.pool.redundancy import (
    Replication,
    least_redundant,
    mismatch,
    replication_of,
    sizes_differ,
)
from zconsole.pool.scan_outcome import has_checkpoint
from zconsole.pool.what_if import Shape, grown, outlook
from zconsole.units import counted, percent, size

FILE_SHIFT = 9
"""The ashift of a file (VDEV_DEFAULT_ASHIFT in vdev_file.c)."""
MOST_AUTO = 14
"""The largest ashift that ZFS chooses by itself (zfs_vdev_max_auto_ashift)."""


class Layout(NamedTuple):
    """A vdev class with the layout of its devices."""

    vclass: str
    """normal, special, dedup, log, cache or spare."""
    kind: str = "disk"
    """mirror, raidz1, raidz2, raidz3, or disk for separate devices."""

    @property
    def holds_data(self) -> bool:
        """Whether losing it loses the pool."""
        return self.vclass in ("normal", "special", "dedup")

    @property
    def least(self) -> int:
        """The smallest number of devices."""
        return {"disk": 1, "mirror": 2}.get(self.kind) or int(self.kind[-1]) + 1

    @property
    def words(self) -> tuple[str, ...]:
        """The words of zpool-add(8) before the devices."""
        kind = () if self.kind == "disk" else (self.kind,)
        return (*(() if self.vclass == "normal" else (self.vclass,)), *kind)

    @property
    def name(self) -> str:
        """Name of the layout: ``raidz2 vdev``, ``special mirror``, ``log``, ``spare``."""
        if self.vclass == "normal":
            return f"{self.kind} vdev"
        return " ".join(self.words)

    def of(self, devices: int) -> Replication:
        """Return the redundancy of the layout with this number of devices."""
        if self.kind.startswith("raidz"):
            return Replication("raidz", devices, int(self.kind[-1]))
        return Replication(self.kind, devices if self.kind == "mirror" else 1)


def _normal(situation: Situation) -> list[Vdev]:
    """Return the top-level vdevs of the normal class, the newest last."""
    return [top for top in data_vdevs(situation.pool.root) if top.vclass == "normal"]


def layouts(situation: Situation) -> tuple[tuple[Layout, int], ...]:
    """Return the layouts that fit this pool, each with its number of devices; 0 is any number."""
    widths: dict[Layout, int] = {}
    for top in map(replication_of, reversed(_normal(situation))):  # the newest's width is offered
        widths.setdefault(Layout("normal", f"{top.kind}{top.parity or ''}"), top.width)
    data = [(each, n) for each, n in widths.items() if each.kind.startswith(("mirror", "raidz"))]
    sides = least_redundant(situation.pool.root) + 1
    return (
        *data,
        (Layout("log", "mirror"), 2),
        (Layout("log"), 0),
        (Layout("cache"), 0),
        (Layout("spare"), 0),
        (Layout("special", "mirror"), sides),
        (Layout("dedup", "mirror"), sides),
    )


def member_bytes(situation: Situation) -> int:
    """Return about the size of the last normal-class vdev's disks in bytes; 0 where unknown."""
    tops = _normal(situation)
    return (least_bytes(tops[-1]) or 0) if tops else 0


def wanted_shift(situation: Situation, layout: Layout) -> int | None:
    """Return the required ashift, that of all normal-class vdevs; None if these differ.

    A cache device may have any (spa_vdev_add, spa.c).
    """
    shifts = {top.ashift for top in _normal(situation)}
    return shifts.pop() if len(shifts) == 1 and layout.vclass != "cache" else None


def _own_shift(situation: Situation, devices: Sequence[Device]) -> int | None:
    """Return the ashift that zpool add would choose: the pool's property, else by the sectors.

    None where the sectors are unknown (zpool_do_add; vdev_ashift_optimize, vdev.c).
    """
    wanted = situation.facts.properties.get("ashift", "0")
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    known = [shift for device in devices if (shift := _device_shift(device)) is not None]
    return max(known) if known and len(known) == len(devices) else None


def _device_shift(device: Device) -> int | None:
    """Return the ashift that ZFS would choose for a device; None where its sectors are unknown."""
    if device.kind == "file":
        return FILE_SHIFT
    if not device.logical or not device.physical:
        return None
    physical = min(MOST_AUTO, device.physical.bit_length() - 1)
    return max(FILE_SHIFT, device.logical.bit_length() - 1, physical)


def ashift_option(
    situation: Situation, layout: Layout, devices: Sequence[Device]
) -> tuple[str, ...]:
    """Return ``-o ashift`` if zpool would choose another than the pool's vdevs have.

    OpenZFS 2.2 and later would refuse that without ``-f``; older releases would add it, and no vdev
    of the pool could be removed any more.
    """
    wanted = wanted_shift(situation, layout)
    if wanted is None or layout.vclass == "spare" or _own_shift(situation, devices) == wanted:
        return ()
    return ("-o", f"ashift={wanted}")


def plan_add(situation: Situation, layout: Layout, devices: tuple[str, ...]) -> ActionPlan:
    """Plan to add devices to a pool as one vdev, or as logs, caches or spares.

    ``devices``: their absolute paths.
    """
    title = f"Add a {layout.name} of {counted(len(devices), 'device')} to {situation.pool.name}"
    if why := _senseless(situation, layout, devices):
        return refuse("add", title, situation, why)
    known = [device for path in devices if (device := situation.facts.named(path)) is not None]
    sizes = _sizes(situation, devices)
    argv = situation.zpool(
        "add",
        *ashift_option(situation, layout, known),
        operands=(*layout.words, *devices),
    )
    stays = permanent(situation, layout)
    plan = ActionPlan(
        action="add",
        title=title,
        steps=(Step(argv, f"add a {layout.name}"),),
        consequences=(
            *meaning(layout),
            *(
                balance_effects(situation, layout.kind, len(devices), sizes)
                * (layout.vclass == "normal")
            ),
            *alignment(situation, layout, known),
            *(() if stays else (removable(situation, layout),)),
        ),
        not_undone=("overwrites what is on the devices", *filter(None, (stays,))),
        warnings=tuple(warnings(situation, layout, devices, sizes)),
        preconditions=(
            must.ANSWERING,
            must.no_activity("removal", "device removal"),
            _same_vdevs(situation),
            *_suitable(layout, len(devices)),
            *(must.same_device(situation, path) for path in devices),
            *(_free(layout, path) for path in devices),
            _like_the_pool(layout, devices),
        ),
        # Only what can never be removed again is worth the typing.
        needs_typed=situation.pool.name if stays else None,
        alternatives=alternatives(situation, layout, devices),
        follow=when(
            lambda now: all(leaf_on(now, path) is not None for path in devices),
            f"the {layout.name} is part of {situation.pool.name}",
        ),
    )
    return decide(plan, situation)


def _sizes(situation: Situation, devices: Sequence[str]) -> list[int]:
    """Return the sizes of the devices at these paths, as far as they are known."""
    found = map(situation.facts.named, devices)
    return [device.size for device in found if device is not None and device.size is not None]


def _senseless(situation: Situation, layout: Layout, devices: tuple[str, ...]) -> str | None:
    """Return why the request makes no sense for any pool; None if it does."""
    if layout.vclass != "normal" and layout.kind.startswith("raidz"):
        return f"ZFS has no {layout.vclass} of raidz: use a mirror"
    if layout.vclass in ("cache", "spare") and layout.kind != "disk":
        return f"a {layout.vclass} is a single device: add several one beside the other"
    if len(devices) < layout.least:
        return f"a {layout.name} needs at least {counted(layout.least, 'device')}"
    if odd := next((path for path in devices if not path.startswith("/")), None):
        return f"{odd}: not an absolute path"
    return _on_one_disk(situation, layout, devices)


def _on_one_disk(situation: Situation, layout: Layout, devices: tuple[str, ...]) -> str | None:
    """Return which devices are the same, or share a disk and so give no redundancy; else None."""
    facts = situation.facts
    found = [facts.named(path) or Device(path) for path in devices]
    for each, other in permutations(found, 2):
        if other.path in (each.path, *each.aliases):
            return "a device is named twice"
        shared = set(facts.disks_under(each)) & set(facts.disks_under(other))
        if shared and layout.kind != "disk":
            both = f"{each.path}, {other.path}"
            return f"on one disk: {both}; a {layout.name} would lose them together"
    return None


def _same_vdevs(situation: Situation) -> Precondition:
    """Require that no vdev was added or removed since planning."""

    def _top_level(at: Situation) -> set[str]:
        return {f"{vdev.vclass} {vdev.guid or vdev.name}" for vdev in at.pool.root.children}

    planned = _top_level(situation)
    why = f"the vdevs of {situation.pool.name} have changed since planning; plan again"
    return Precondition(
        "no vdev was added or removed since planning",
        lambda now: None if _top_level(now) == planned else why,
    )


def _suitable(layout: Layout, devices: int) -> tuple[Precondition, ...]:
    """Require of a data vdev that it is as redundant as the pool, and its feature is enabled."""
    if not layout.holds_data:
        return ()
    feature = must.feature("allocation_classes", f"a {layout.vclass} vdev", (0, 8))
    redundant = Precondition(
        "it is as redundant as the pool", lambda s: _too_weak(s, layout, layout.of(devices))
    )
    return (redundant,) if layout.vclass == "normal" else (feature, redundant)


def _too_weak(situation: Situation, layout: Layout, new: Replication) -> str | None:
    """Return why the new vdev would be lost more easily than the others; None if it wouldn't."""
    wanted = least_redundant(situation.pool.root)
    if new.survives >= wanted:
        return None
    lost = f"if it is lost, all of {situation.pool.name} is lost"
    what = f"{layout.vclass} vdev" if layout.vclass != "normal" else "vdev"
    if not new.survives:
        return f"a lone disk as a {what} has no redundancy: {lost}"
    return (
        f"less redundancy than the pool: a {new.words} survives {new.survives} lost, the pool's"
        f" vdevs {wanted}; {lost}"
    )


def _free(layout: Layout, path: str) -> Precondition:
    """Require that the device is present, empty and unused, as far as the machine tells."""

    def _check(situation: Situation) -> str | None:
        device = situation.facts.named(path)
        if device is None:
            return f"{path} is not a device of this machine" if situation.facts.devices else None
        problems = judge_new(situation.pool, device, wanted_shift(situation, layout)).problems
        return f"{path}: {'; '.join(problems)}" if problems else None

    return Precondition(f"{path} is there, free and fits", _check)


def _like_the_pool(layout: Layout, devices: tuple[str, ...]) -> Precondition:
    """Require a layout that needs no ``-f`` (check_replication) and that the kernel accepts.

    The kernel's checks are in spa_vdev_add (spa.c).
    """

    def _check(situation: Situation) -> str | None:
        if not layout.holds_data:
            return None
        # Samples don't show the remains of a removal, but the feature stays active for good
        # (zpool-features(7)).
        removed = situation.facts.features.get("device_removal") == "active"
        if layout.kind.startswith("raidz") and removed:
            return "a vdev was removed from this pool: ZFS adds no raidz to it any more"
        sizes = _sizes(situation, devices)
        why = mismatch(situation.pool.root, layout.of(len(devices)), sizes)
        return None if why is None else f"{why}; zpool adds that only with -f, never used here"

    return Precondition("its layout is like that of the pool's vdevs", _check)


UNEQUAL = 0.05
"""Relative difference in disk size from the other vdevs above which it is mentioned."""
NAMED_VDEVS = 3
"""Number of vdevs whose share of new writes is named."""


def meaning(layout: Layout) -> tuple[str, ...]:
    """Return what a vdev class is for, and what its loss means."""
    return {
        "normal": ("adds space; data already written stays where it is",),
        "special": (
            "metadata written from now on goes to it, and small blocks where special_small_blocks"
            " is set; what is written already stays where it is",
            "if the special vdev is lost, the whole pool is lost",
        ),
        "dedup": (
            "new entries of deduplication tables go to it",
            "if the dedup vdev is lost, the whole pool is lost",
        ),
        "log": ("synchronous writes (databases, NFS) go to it first; other writes don't use it",),
        "cache": ("keeps copies of data often read; when it fails, nothing is lost",),
        "spare": ("stands by: where zfs-zed runs, it takes the place of a device that fails",),
    }[layout.vclass]


def alignment(situation: Situation, layout: Layout, devices: Sequence[Device]) -> Iterator[str]:
    """Yield the ashift of the new vdev, and why."""
    wanted = wanted_shift(situation, layout)
    if layout.vclass in ("cache", "spare"):
        return
    if wanted is None:
        yield "ashift: chosen by ZFS; that of the pool's vdevs is unknown or differs"
    elif ashift_option(situation, layout, devices):
        yield f"ashift {wanted}, given as the pool's vdevs have it and ZFS may choose another"
    else:
        yield f"ashift {wanted}, as the pool's vdevs have it"


def balance_effects(
    situation: Situation, kind: str, devices: int, sizes: Sequence[int]
) -> tuple[str, ...]:
    """Return how space, new writes and balance change; a note instead where sizes are unknown."""
    root = situation.pool.root
    known = all(v.size_bytes and v.alloc_bytes is not None for v in data_vdevs(root))
    if len(sizes) < devices or not known:
        return ("how space and new writes change is unknown: not all sizes are known",)
    # ZFS uses every disk of a vdev up to the size of the smallest, less its labels.
    shape = Shape(kind, devices, max(0, min(sizes) - LABELS))
    version = ".".join(map(str, situation.facts.version)) or None
    view = outlook(root, grown(root, (shape,), {}), version, situation.pool.volumes)
    *others, new = view.after.vdevs
    shares = ", ".join(f"{v.name} {percent(v.new_write_share, 0)}" for v in others[:NAMED_VDEVS])
    if len(others) > NAMED_VDEVS:
        shares += f", {len(others) - NAMED_VDEVS} more vdevs the rest"
    if view.busy_share is not None:
        shares += f"; about {percent(view.busy_share, 0)} to it with all disks busy"
    spread = f"fill of the vdevs differs by {percent(view.after.spread)} then"
    spread += f" ({percent(view.before.spread)} now)"
    if view.rewrite_bytes:
        act = KeyedText("zconsole rebalance", "{keys}", "rebalance")
        spread += (
            "; a rebalance (" + act + f") would rewrite {size(view.rewrite_bytes)} to even it out"
        )
    return (
        f"usable free space: {_free_words(view.before)} now, {_free_words(view.after)} then",
        f"new writes: about {percent(new.new_write_share, 0)} to the new vdev, {shares}",
        spread,
    )


def _free_words(found: Balance) -> str:
    """Return the usable free space of all vdevs, in words."""
    known = [vdev.usable_free_bytes for vdev in found.vdevs]
    return "unknown" if None in known else size(sum(filter(None, known)))


def permanent(situation: Situation, layout: Layout) -> str | None:
    """Return why the vdev can never be removed; None if zpool remove could (vdev_removal.c).

    Anything unknown counts as removable.
    """
    if not layout.holds_data:
        return None
    why = NO_RAIDZ if layout.kind.startswith("raidz") else unremovable(situation)
    return f"the {layout.name} can never be removed again: {why}" if why else None


def removable(situation: Situation, layout: Layout) -> str:
    """Return how a vdev that can be removed is removed (zpool-remove(8))."""
    later = " only once the checkpoint is discarded" if has_checkpoint(situation.pool) else ""
    if not layout.holds_data:
        return f"zpool remove {'can take' if later else 'takes'} it out again{later}"
    return (
        f"zpool remove can take it out again{later}{',' * bool(later)} while the other vdevs have"
        " room for its data and the keys of all encrypted datasets are loaded; a table of moved"
        " blocks then stays in memory"
    )


def warnings(
    situation: Situation, layout: Layout, devices: tuple[str, ...], sizes: Sequence[int]
) -> Iterator[str]:
    """Yield warnings for the operator."""
    if has_checkpoint(situation.pool):
        # A rewind undoes the add: zpoolconcepts(7), Pool checkpoint.
        only = ", the only way to undo it," if permanent(situation, layout) else ""
        yield (
            f"the pool has a checkpoint: a rewind to it takes this out again{only} and loses all"
            " that was written since the checkpoint"
        )
    if layout.holds_data and (gone := failed(situation.pool)):
        names = ", ".join(f"{target.name} ({target.vdev.state})" for target in gone)
        yield f"{names}: adding repairs nothing; to restore redundancy, replace the device"
    for path in devices:
        device = situation.facts.named(path)
        if device is None:
            yield f"{path} not examined: its size and content are unknown"
            continue
        yield from (
            f"{path}: {text}"
            for text in judge_new(situation.pool, device, wanted_shift(situation, layout)).cautions
        )
        if (
            layout.vclass == "spare"
            and device.size
            and (few := too_small(situation.pool.root, device.size))
        ):
            yield f"{path} ({size(device.size)}) is too small to stand in for {few}"
    if layout == Layout("log"):
        yield (
            "not mirrored: if it fails in the moment in which the machine crashes, the last seconds"
            " of synchronous writes are lost"
        )
    mine = layout.of(len(devices))
    if layout.vclass == "normal":
        yield from _differences(_normal(situation), mine, sizes)
    unchecked = not layout.holds_data or mismatch(situation.pool.root, mine, sizes) is None
    if layout.kind != "disk" and unchecked and (why := sizes_differ(sizes)) is not None:
        yield f"{why}; each is used up to the smallest"


def _differences(tops: Sequence[Vdev], new: Replication, sizes: Sequence[int]) -> Iterator[str]:
    """Yield how the new vdev differs in width and disk size from the pool's vdevs."""
    widths = sorted({replication_of(top).width for top in tops})
    if widths != [new.width]:
        others = " and ".join(map(str, widths))
        yield f"another width: {new.width} disks, the pool's vdevs have {others}"
    least = [need for top in tops if (need := least_bytes(top))]
    if not sizes or not least:
        return
    mine, smallest, largest = min(sizes), min(least), max(least)
    if mine < smallest * (1 - UNEQUAL) or mine > largest * (1 + UNEQUAL):
        others = " to ".join(dict.fromkeys((size(smallest), size(largest))))
        yield f"another size: disks of {size(mine)}, the pool's vdevs have {others}"


def alternatives(situation: Situation, layout: Layout, devices: tuple[str, ...]) -> tuple[str, ...]:
    """Return alternatives; for a lone disk those that are probably meant."""
    if not layout.holds_data:
        return ()
    tops = _normal(situation)
    said = [*_for_a_disk(situation, tops)] if len(devices) == 1 else []
    if tops and tops[-1].children and layout.vclass == "normal":
        said.append(f"add a {replication_of(tops[-1]).words}, like {tops[-1].name}")
    if layout.vclass != "normal":
        said.append(f"add a mirror of {least_redundant(situation.pool.root) + 1} disks")
    return tuple(said)


def _for_a_disk(situation: Situation, tops: Sequence[Vdev]) -> Iterator[str]:
    """Yield ways in which one disk improves the pool's redundancy."""
    for target in failed(situation.pool):
        yield f"replace {target.name} ({target.vdev.state}) with it"
    if (single := next((v for v in tops if not v.children), None)) is not None:
        yield f"attach it to {single.name}: the two become a mirror"
    if (mirror := next((v for v in tops if v.kind == "mirror"), None)) is not None:
        yield f"attach it to a disk of {mirror.name}: one more may fail there"
    raidz = next((v for v in tops if v.kind.startswith("raidz")), None)
    if raidz is not None and situation.facts.has("raidz_expansion"):
        yield f"attach it to {raidz.name}, which makes that one disk wider"
    yield "add it as a spare, to stand in for a device that fails"
