"""Functions on trees of vdevs that the decoders share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import Vdev

DEEPEST = 32
"""Levels of vdevs, far more than ZFS nests: pool, top-level vdev, spare, replacing, disk. What
works through a tree calls itself for each level, and Python has an end to that."""
MOST_VDEVS = 20_000
"""Vdevs of all pools together: a thousand raidz2 with ten disks each are 11,004 in four pools. Each
takes about 13 KB from its text to the frames that are shown."""
TOO_MANY = f"damaged ZFS output: more than {MOST_VDEVS} vdevs"
TOO_DEEP = "damaged ZFS output: vdevs are nested too deep"


def check_size(roots: Iterable[Vdev]) -> int:
    """The number of vdevs. Raises NotUnderstoodError where they are too many or too deep."""
    count, level, depth = 0, list(roots), 0
    while level:
        count, depth = count + len(level), depth + 1
        if depth > DEEPEST:
            raise NotUnderstoodError(TOO_DEEP)
        if count > MOST_VDEVS:
            raise NotUnderstoodError(TOO_MANY)
        level = [child for vdev in level for child in vdev.children]
    return count


def check_rows(lengths: Iterable[int]) -> None:
    """Raise NotUnderstoodError where tables have more rows than there may be vdevs.

    Before they are read, which takes a hundred times as long as to count them. Some rows are
    headings.
    """
    if sum(lengths) > 2 * MOST_VDEVS:
        raise NotUnderstoodError(TOO_MANY)


def with_spares(children: tuple[Vdev, ...]) -> tuple[Vdev, ...]:
    """The root's children with what only all of them together tell of spares."""
    return _with_spares_left(_with_shared(children))


def _with_shared(children: tuple[Vdev, ...]) -> tuple[Vdev, ...]:
    """Mark hot spares in several places, known by GUID, or by name where a source has none."""
    groups = [v for child in children for v in child.walk() if v.kind == "spare" and v.children]
    spares = {id(v): v for group in groups for new in group.children[1:] for v in new.leaves()}
    uses = Counter(spare.guid or spare.name for spare in spares.values())
    shared = {spare for spare, count in uses.items() if count > 1}
    return _marked(children, shared) if shared else children


def _marked(vdevs: tuple[Vdev, ...], shared: Collection[str]) -> tuple[Vdev, ...]:
    return tuple(
        vdev._replace(children=_marked(vdev.children, shared))
        if vdev.children
        else vdev._replace(shared=(vdev.guid or vdev.name) in shared)
        for vdev in vdevs
    )


def _with_spares_left(children: tuple[Vdev, ...]) -> tuple[Vdev, ...]:
    """The root's children with each dRAID's number of distributed spares still available.

    A distributed spare is named after its top-level vdev: ``draid1-0-1`` is spare 1 of the
    top-level vdev with id 0 (zpool_draid_spare_name, module/zcommon).
    """
    if not any(child.kind.startswith("draid") for child in children):
        return children
    free = [c.name for c in children if c.kind == "dspare" and c.state == "AVAIL"]
    return tuple(
        child._replace(spares_left=_spares_of(child, free))
        if child.kind.startswith("draid")
        else child
        for child in children
    )


def _spares_of(draid: Vdev, free: list[str]) -> int:
    stem = f"{draid.kind}-{draid.name.rpartition('-')[2]}-"
    return sum(name.startswith(stem) for name in free)
