"""Finding the device that an operator means: by bay, serial, GUID, path or name."""

from __future__ import annotations

from zconsole.actions.doubts import suspects
from zconsole.actions.target import Target, failed, find
from zconsole.errors import NotFoundError, UsageError
from zconsole.hardware.device import Device
from zconsole.pool.model import Pool, Vdev
from zconsole.pool.topology import FAILED
from zconsole.swap.disk import device_of, disk_of, disk_of_leaf, leaves_of
from zconsole.swap.refusal import STACKED
from zconsole.swap.view import MachineView

NAMED = 3
"""Free disks that are named."""


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
    if len({leaf.guid or leaf.name for _, leaf in found}) > 1:
        names = ", ".join(leaf.name for _, leaf in found)
        raise UsageError(f"{word!r} means {names}: name it by GUID or serial")
    return found[0][0]


def proposed(v: MachineView) -> tuple[Target, ...]:
    """The devices that a swap is offered for where none was named."""
    if v.situation.suspended and (out := gone_from(v)):
        return out[:1]  # no swap may begin: one device is enough to say why
    pool = v.situation.pool
    found = (*suspects(pool, v.faulty), *in_replacement(pool))
    return tuple({target.key: target for target in found}.values()) or departed(v)


def free_to_go(v: MachineView) -> str:
    """The disks of the machine that hold nothing, such as replaced ones, in words; may be empty."""
    if not v.devices:
        return ""
    used = [disk_of_leaf(s, leaf, key) for s in v.situations for key, leaf in leaves_of(s.pool)]
    free = [disk_of(d) for d in v.devices if _is_blank(d) and not any(u.is_on(d) for u in used)]
    more = f" and {len(free) - NAMED} more" if len(free) > NAMED else ""
    return f"{', '.join(disk.words for disk in free[:NAMED])}{more}" if free else ""


def _is_blank(device: Device) -> bool:
    taken = device.mounted or device.swap or device.holders or device.contents.names
    return device.kind == "disk" and not taken and device.contents.zfs_pool is None


def is_being_replaced(target: Target) -> bool:
    """Whether the device is the old one of a replace that runs."""
    group = target.group
    return group is not None and group.kind == "replacing" and group.children[0] is target.vdev


def in_replacement(pool: Pool) -> tuple[Target, ...]:
    """The devices that are being replaced now."""
    found = (find(pool, key) for key, _ in leaves_of(pool))
    return tuple(target for target in found if target is not None and is_being_replaced(target))


def departed(v: MachineView) -> tuple[Target, ...]:
    """Devices that are out although nothing needs to begin, or can, for them.

    Those that failed and are being replaced; and, while the pool is suspended and no sample tells
    it, those that the machine lost.
    """
    s = v.situation
    found = (find(s.pool, key) for key, _ in leaves_of(s.pool))
    return tuple(t for t in found if t is not None and (_is_replaced(t) or _is_lost(v, t)))


def gone_from(v: MachineView) -> tuple[Target, ...]:
    """The devices that failed or that the machine lost; those that nothing replaces come first."""
    found = {target.key: target for target in (*failed(v.situation.pool), *departed(v))}
    return tuple(sorted(found.values(), key=is_being_replaced))


def _is_replaced(target: Target) -> bool:
    return is_being_replaced(target) and target.vdev.state in FAILED


def _is_lost(v: MachineView, target: Target) -> bool:
    if not (v.situation.suspended and v.devices) or target.vdev.kind != "disk":
        return False
    known = disk_of_leaf(v.situation, target.vdev, target.key)
    stacked = (target.vdev.path or "").startswith(STACKED)
    return not stacked and device_of(known, v.devices) is None


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
