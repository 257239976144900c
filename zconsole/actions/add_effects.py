"""What adding to a pool brings, whether it can be undone, and what can be done instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zconsole.actions.candidates import judge_new
from zconsole.actions.layout import Layout, ashift_option, wanted_shift
from zconsole.actions.plan import Situation
from zconsole.actions.target import failed
from zconsole.hardware.device import Device
from zconsole.pool.balance import Balance, VdevBalance
from zconsole.pool.model import Vdev
from zconsole.pool.redundancy import (
    Replication,
    least_redundant,
    mismatch,
    replication_of,
    sizes_differ,
)
from zconsole.pool.scan_outcome import has_checkpoint
from zconsole.pool.spares import LABELS, least_bytes, too_small
from zconsole.pool.topology import data_vdevs
from zconsole.pool.what_if import Outlook, Shape, grown, outlook
from zconsole.units import percent, size

UNEQUAL = 0.05
"""Share by which disks of a new vdev may differ in size from the others' before that is said."""
MOST = 3
"""Vdevs whose share of new writes is named."""


def meaning(layout: Layout) -> tuple[str, ...]:
    """What it is for, and what its loss means."""
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
    """The ashift of what is added, and why."""
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
    """How space, new writes and balance change; empty where sizes are unknown."""
    root = situation.pool.root
    known = all(v.size_bytes and v.alloc_bytes is not None for v in data_vdevs(root))
    if len(sizes) < devices or not known:
        return ("how space and new writes change is unknown: not all sizes are known",)
    shape = Shape(kind, devices, max(0, min(sizes) - LABELS))
    version = ".".join(map(str, situation.facts.version)) or None
    view = outlook(root, grown(root, (shape,), {}), version)
    return (
        f"usable free space: {_free_words(view.before)} now, {_free_words(view.after)} then",
        _write_words(view.after),
        _fill_words(view),
    )


def _free_words(found: Balance) -> str:
    """What is free after parity, in all."""
    known = [vdev.usable_free_bytes for vdev in found.vdevs]
    return "unknown" if None in known else size(sum(filter(None, known)))


def _write_words(after: Balance) -> str:
    """``the new vdev takes 84 % of new writes, raidz2-0 16 %``."""
    *others, new = after.vdevs
    said = ", ".join(f"{vdev.name} {_share(vdev)}" for vdev in others[:MOST])
    more = f", {len(others) - MOST} more vdevs the rest" if len(others) > MOST else ""
    return f"new writes: about {_share(new)} to the new vdev, {said}{more}"


def _share(vdev: VdevBalance) -> str:
    return percent(vdev.new_write_share, 0)


def _fill_words(view: Outlook) -> str:
    """How unevenly data lies then, and what evening it out takes."""
    spread = f"fill of the vdevs differs by {percent(view.after.spread)} then"
    spread += f" ({percent(view.before.spread)} now)"
    if not view.rewrite_bytes:
        return spread
    return f"{spread}; a rebalance (B) would rewrite {size(view.rewrite_bytes)} to even it out"


def permanent(situation: Situation, layout: Layout) -> str | None:
    """Why it could never be removed again; None where zpool remove could (vdev_removal.c).

    What is unknown counts as possible.
    """
    if not layout.holds_data:
        return None
    tops = data_vdevs(situation.pool.root)
    kinds = [layout.kind, *(top.kind for top in tops)]
    has_parity = any(kind.startswith(("raidz", "draid")) for kind in kinds)
    shifts = {top.ashift for top in tops if top.vclass == "normal"} - {None}
    if has_parity:
        why = "no vdev with data can be removed from a pool with raidz or dRAID"
    elif situation.facts.has("device_removal") is False:
        why = "the pool lacks the feature device_removal"
    elif len(shifts) > 1:
        why = "no vdev can be removed where ashift differs between vdevs"
    else:
        return None
    return f"the {layout.name} can never be removed again: {why}"


def removable(situation: Situation, layout: Layout) -> str:
    """How it can be taken out again, where it can (zpool-remove(8))."""
    later = " only once the checkpoint is discarded" if has_checkpoint(situation.pool) else ""
    if not layout.holds_data:
        return f"zpool remove {'can take' if later else 'takes'} it out again{later}"
    return (
        f"zpool remove can take it out again{later}{',' * bool(later)} while the other vdevs have"
        " room for its data and the keys of all encrypted datasets are loaded; a table of moved"
        " blocks then stays in memory"
    )


def _checkpoint_doubt(situation: Situation, layout: Layout) -> str:
    """What a rewind to the checkpoint would undo (zpoolconcepts(7), Pool checkpoint)."""
    only = ", the only way to undo it," if permanent(situation, layout) else ""
    return (
        f"the pool has a checkpoint: a rewind to it takes this out again{only} and loses all that"
        " was written since the checkpoint"
    )


def warnings(
    situation: Situation, layout: Layout, devices: tuple[str, ...], sizes: Sequence[int]
) -> Iterator[str]:
    """What an operator should look at before."""
    if has_checkpoint(situation.pool):
        yield _checkpoint_doubt(situation, layout)
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
    if layout.vclass == "normal":
        yield from _differences(situation.pool.root, layout.of(len(devices)), sizes)
    mine = layout.of(len(devices))
    unchecked = not layout.holds_data or mismatch(situation.pool.root, mine, sizes) is None
    if layout.kind != "disk" and unchecked and (why := sizes_differ(sizes)) is not None:
        yield f"{why}; each is used up to the smallest"


def _differences(root: Vdev, new: Replication, sizes: Sequence[int]) -> Iterator[str]:
    """How the new vdev differs in width and size of disks from the pool's vdevs."""
    tops = [v for v in data_vdevs(root) if v.vclass == "normal"]
    widths = sorted({replication_of(top).width for top in tops})
    if widths != [new.width]:
        others = " and ".join(map(str, widths))
        yield f"another width: {new.width} disks, the pool's vdevs have {others}"
    least = [need for top in tops if (need := least_bytes(top))]
    if not sizes or not least:
        return
    mine, smallest, largest = min(sizes), min(least), max(least)
    if mine < smallest * (1 - UNEQUAL) or mine > largest * (1 + UNEQUAL):
        others = size(smallest) + (
            f" to {size(largest)}" if size(largest) != size(smallest) else ""
        )
        yield f"another size: disks of {size(mine)}, the pool's vdevs have {others}"


def alternatives(situation: Situation, layout: Layout, devices: tuple[str, ...]) -> tuple[str, ...]:
    """What to do where this cannot be added: what people mean who add a lone disk."""
    if not layout.holds_data:
        return ()
    tops = [v for v in data_vdevs(situation.pool.root) if v.vclass == "normal"]
    said = [*_for_a_disk(situation, tops)] if len(devices) == 1 else []
    if tops and tops[-1].children and layout.vclass == "normal":
        said.append(f"add a {replication_of(tops[-1]).words}, like {tops[-1].name}")
    if layout.vclass != "normal":
        said.append(f"add a mirror of {least_redundant(situation.pool.root) + 1} disks")
    return tuple(said)


def _for_a_disk(situation: Situation, tops: Sequence[Vdev]) -> Iterator[str]:
    """What one disk can do for the pool's redundancy."""
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
