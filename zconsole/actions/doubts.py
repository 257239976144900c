"""Whether the device that was chosen is the one that needs it."""

from __future__ import annotations

from collections.abc import Iterable

from zconsole.actions.target import Target, failed, find, key_of
from zconsole.pool.model import Pool
from zconsole.pool.topology import FAILED


def suspects(pool: Pool, faulty: Iterable[str] = ()) -> tuple[Target, ...]:
    """The devices to replace first: failed ones, ``faulty`` ones (by key), others with errors."""
    lost = [target.key for target in failed(pool)]
    noisy = (v for v in pool.root.leaves() if v.errors.total and v.vclass != "cache")
    counted = [key for v in noisy if not v.shared and (key := key_of(pool, v)) is not None]
    found = (find(pool, key) for key in dict.fromkeys((*lost, *faulty, *counted)))
    return tuple(t for t in found if t is not None and not t.vdev.children)


def doubts(
    pool: Pool, key: str, faulty: Iterable[str] = (), healthy: bool = True
) -> tuple[str, ...]:
    """What speaks for another device: this one shows no errors, and others do, or have failed.

    ``healthy``: also where no other device does. Nobody replaces a good disk for nothing, but one
    goes offline for many reasons.
    """
    target = find(pool, key)
    others = suspects(pool, faulty)
    if target is None or target.vdev.state in FAILED or key in {other.key for other in others}:
        return ()
    if not (others or healthy):
        return ()
    said = [f"{target.vdev.name} shows no errors"]
    for verb, is_meant in (("failed", True), ("errors", False)):
        names = [t.vdev.name for t in others if (t.vdev.state in FAILED) == is_meant]
        if names:
            said.append(f"{', '.join(names)} {'has' if len(names) == 1 else 'have'} {verb}")
    return ("; ".join(said),)
