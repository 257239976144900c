"""What goes before any swap while the pool is suspended: bring its disks back, and clear it."""

from __future__ import annotations

import shlex

from zconsole.actions.conditions import OTHER_HOST
from zconsole.actions.target import Target
from zconsole.pool.model import MULTIHOST
from zconsole.swap.disk import disk_of_leaf, leaves_of
from zconsole.swap.names import gone_from, is_being_replaced
from zconsole.swap.refusal import ManualStep, Refusal
from zconsole.swap.view import MachineView


def suspension(v: MachineView) -> Refusal | None:
    """Why no swap may begin, which disks are out, and what to do; None while the pool goes on."""
    s = v.situation
    if not s.suspended:
        return None
    out, pool = gone_from(v), s.pool.name
    if s.pool.suspension == MULTIHOST:
        return Refusal(
            f"not while the pool is suspended: {OTHER_HOST}",
            ("make sure that no other host has it, then reboot this machine and import it",),
            f"{pool} IS SUSPENDED: another host may have it",
        )
    back = [target for target in out if not is_being_replaced(target)]
    bring = " and ".join(_words(v, target) for target in back)
    spots = " and ".join(_spot(v, target) for target in back)
    title = f"bring {spots or 'its disks'} back, then clear it"
    if v.devices and not back:
        title = "its disks are there: clear it"
    listed = "; ".join(_listed(v, target) for target in out)
    return Refusal(
        f"not while the pool is suspended: {pool} waits for its disks, and takes no command but"
        f" zpool clear. {f'Out: {listed}' if out else 'Which disks are out is not known'}",
        (
            f"bring {bring} back, into the same bay; check cable, port and power"
            if bring
            else "check cables, ports and power of its disks",
            ManualStep("then resume the pool (A has it)", (f"zpool clear {shlex.quote(pool)}",)),
            "pull nothing until then",
        ),
        f"{pool} IS SUSPENDED: {title}",
    )


def _words(v: MachineView, target: Target) -> str:
    return disk_of_leaf(v.situation, target.vdev, target.key).words


def _spot(v: MachineView, target: Target) -> str:
    return disk_of_leaf(v.situation, target.vdev, target.key).spot


def _listed(v: MachineView, target: Target) -> str:
    """A disk that is out; where another one takes its place already, that is said."""
    group = target.group
    if not is_being_replaced(target) or group is None:
        return _words(v, target)
    new = group.children[-1]
    key = next((k for k, leaf in leaves_of(v.situation.pool) if leaf is new), "")
    by = disk_of_leaf(v.situation, new, key)
    return f"{_words(v, target)}, which {by.spot} replaces already"
