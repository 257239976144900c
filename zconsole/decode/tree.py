"""What the decoders share about trees of vdevs."""

from __future__ import annotations

from zconsole.model import Vdev


def with_spares_left(children: tuple[Vdev, ...]) -> tuple[Vdev, ...]:
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
