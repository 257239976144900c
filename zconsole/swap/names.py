"""Finding the device that an operator means: by bay, serial, GUID, path or name."""

from __future__ import annotations

from zconsole.actions import doubts
from zconsole.actions.target import Target
from zconsole.errors import NotFoundError, UsageError
from zconsole.pool.model import Vdev
from zconsole.swap.disk import disk_of_leaf, leaves_of
from zconsole.swap.view import MachineView


def device_named(v: MachineView, word: str) -> str:
    """The key of the leaf that ``word`` means.

    Raises NotFoundError without one, UsageError where it means several.
    """
    found = [
        (key, leaf) for key, leaf in leaves_of(v.situation.pool) if word in _names(v, key, leaf)
    ]
    pool = v.situation.pool.name
    if not found:
        raise NotFoundError(f"{pool} has no device {word!r}: name it by bay, serial, path or GUID")
    if len(found) > 1:
        names = ", ".join(leaf.name for _, leaf in found)
        raise UsageError(f"{word!r} means {names}: name it by GUID or serial")
    return found[0][0]


def suspects(v: MachineView) -> tuple[Target, ...]:
    """The devices that a swap may be about: failed ones, then those with errors, new ones first."""
    return doubts.suspects(v.situation.pool, [fault.key for fault in v.faults])


def _names(v: MachineView, key: str, leaf: Vdev) -> frozenset[str]:
    disk = disk_of_leaf(v.situation, leaf, key)
    device = v.situation.facts.device(leaf.path or "")
    paths = (device.path, *device.aliases) if device else ()
    short = (path.rpartition("/")[2] for path in paths)
    return frozenset(
        word
        for word in (
            *(key, leaf.name, leaf.path, leaf.guid, disk.bay, disk.serial, disk.wwn, disk.port),
            *paths,
            *short,
        )
        if word
    )
