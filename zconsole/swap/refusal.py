"""Disks a checklist must not lead through, and how each is swapped by hand."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from zconsole.actions.conditions import OTHER_HOST, no_checkpoint, present
from zconsole.actions.plan import Situation
from zconsole.actions.target import Target, partition_of
from zconsole.hardware.device import Device
from zconsole.pool.model import MULTIHOST, Vdev
from zconsole.pool.scan_outcome import left_behind
from zconsole.swap.disk import (
    STACKED,
    MachineView,
    SwapDisk,
    gone_from,
    is_being_replaced,
    replacing,
)


class Refusal(NamedTuple):
    """Why a swap is not guided, and the steps that do it by hand."""

    why: str
    by_hand: tuple[tuple[str, ...], ...] = ()
    """What to do by hand, in order: each step in words, and the commands that do it, if any."""
    title: str = ""
    """What to do before any swap is thought of; empty where only this device isn't guided."""

    @property
    def manual(self) -> tuple[str, ...]:
        """The steps by hand, a line each."""
        return tuple(
            f"{text}: {', then '.join(commands)}" if commands else text
            for text, *commands in self.by_hand
        )

    @property
    def commands(self) -> tuple[str, ...]:
        """Only the commands of those steps, in order."""
        return tuple(command for _, *commands in self.by_hand for command in commands)


def refusal(view: MachineView, target: Target, old: SwapDisk) -> Refusal | None:
    """Why this leaf can't be swapped by a checklist; None when it can."""
    situation, path = view.situation, target.vdev.path or ""
    pool, name = shlex.quote(view.pool.name), shlex.quote(target.argument)
    if situation.suspended:
        return _suspended(view)
    if (why := no_checkpoint().check(situation)) is not None:
        return _checkpointed(situation, why)
    if (why := present(target).check(situation)) is not None:
        return Refusal(why)
    found = _no_disk(pool, name, target.vdev) or _newcomer(pool, name, target)
    device = situation.facts.disk(path)
    if found is None and device is None and path.startswith(STACKED):
        return _stacked(pool, name, path)  # a multipath disk is one of the machine's
    return found if device is None else found or _shared(pool, name, target, device, old)


def _checkpointed(situation: Situation, why: str) -> Refusal:
    """No swap comes to its end while a checkpoint exists: neither replace nor resilver does."""
    pool, checkpoint = situation.pool.name, situation.pool.checkpoint
    going = checkpoint is not None and checkpoint.discarding
    ended = left_behind(situation.pool.root) and situation.active("resilver") is None
    quoted = shlex.quote(pool)
    again = "then resilver again, which ends the replace that was begun (S has it)"
    return Refusal(
        f"{why}. A resilver doesn't complete beside one either",
        (
            ("wait until the checkpoint is discarded",)
            if going
            else ("discard the checkpoint (A has it)", f"zpool checkpoint -d {quoted}"),
            *(((again, f"zpool resilver {quoted}"),) * ended),
        ),
        f"{pool} HAS A CHECKPOINT: {'it is being discarded' if going else 'discard it first'}",
    )


def _no_disk(pool: str, name: str, leaf: Vdev) -> Refusal | None:
    """Why it is not a disk that holds data; None when it is."""
    if leaf.children:
        return Refusal(f"{leaf.name} is not a device: name one of its devices")
    if leaf.kind == "file":
        return Refusal(
            f"{leaf.name} is a file, not a disk",
            (
                ("make a new file of the same size",),
                ("replace by it", f"zpool replace {pool} {name} NEWFILE"),
            ),
        )
    if leaf.kind == "dspare":
        return Refusal(f"{leaf.name} is space on the other disks of its dRAID: nothing to pull")
    if leaf.vclass in ("spare", "cache"):
        return Refusal(
            f"{leaf.name} is a {leaf.vclass} device: it holds no data of its own",
            (
                ("take it out of the pool", f"zpool remove {pool} {name}"),
                ("pull the old disk and insert the new one",),
                ("add the new one", f"zpool add {pool} {leaf.vclass} NEW"),
            ),
        )
    return None


def _newcomer(pool: str, name: str, target: Target) -> Refusal | None:
    """The new device of a replace that runs: led to its pull, the good disk would go."""
    group, leaf = replacing(target), target.vdev
    if group is None or leaf is not group.children[-1]:
        return None
    first = group.children[0].name
    return Refusal(
        f"{leaf.name} takes the place of {first}: name {first} to swap that one",
        ((f"where {leaf.name} is the bad one", f"zpool detach {pool} {name}"),),
    )


def _stacked(pool: str, name: str, path: str) -> Refusal:
    return Refusal(
        f"{path} is not a disk itself, but encryption (dm-crypt), LVM, multipath or md on top of"
        " one. Which disk is below, and how to make the new one, isn't known here",
        (
            ("find the disk below", f"lsblk --inverse {path}"),
            ("take it offline", f"zpool offline {pool} {name}"),
            ("close the mapping (cryptsetup close NAME, lvchange -an LV or multipath -f NAME)",),
            ("pull the disk by its serial number, insert the new one",),
            (
                "make the mapping again on the new one (cryptsetup luksFormat and open, or"
                " lvcreate)",
            ),
            ("replace", f"zpool replace {pool} {name} /dev/mapper/NEW"),
        ),
    )


def _shared(pool: str, name: str, target: Target, device: Device, old: SwapDisk) -> Refusal | None:
    """Other things on the same disk: they would go with it."""
    found = [f"{where} is mounted from it" for where in device.mounted]
    found += ["it is used as swap"] if device.swap else []
    found += [f"{holder} is built on it" for holder in device.holders]
    found += [f"it also holds {content}" for content in device.contents.names]
    if not found:
        return None
    part = partition_of(target.vdev) or "N"
    return Refusal(
        f"{old.words} holds more than this pool: {'; '.join(found)}",
        (
            ("save what else is on the disk, and unmount it or switch its swap off (swapoff)",),
            ("take it offline", f"zpool offline {pool} {name}"),
            (f"pull {old.words}, insert the new disk",),
            (
                "copy the partition table from a disk that is still there",
                "sgdisk --replicate=/dev/NEW /dev/OTHER",
                "sgdisk --randomize-guids /dev/NEW",
            ),
            (
                "where the machine boots from it, make it bootable again (grub-install, or"
                " proxmox-boot-tool format and init of the EFI partition)",
            ),
            ("replace", f"zpool replace {pool} {name} /dev/disk/by-id/NEW-part{part}"),
        ),
    )


def _suspended(view: MachineView) -> Refusal:
    """What goes before any swap while the pool is suspended: bring its disks back, and clear it."""
    out, pool = gone_from(view), view.pool.name
    if view.pool.suspension == MULTIHOST:
        return Refusal(
            f"not while the pool is suspended: {OTHER_HOST}",
            (("make sure that no other host has it, then reboot this machine and import it",),),
            f"{pool} IS SUSPENDED: another host may have it",
        )
    back = [view.disk(target) for target in out if not is_being_replaced(target)]
    spots = " and ".join(disk.spot for disk in back)
    bring = "check cables, ports and power of its disks"
    if back:
        words = " and ".join(disk.words for disk in back)
        bring = f"bring {words} back, into the same bay; check cable, port and power"
    title = f"bring {spots or 'its disks'} back, then clear it"
    if view.devices and not back:
        title = "its disks are there: clear it"
    listed = "; ".join(_listed(view, target) for target in out)
    return Refusal(
        f"not while the pool is suspended: {pool} waits for its disks, and takes no command but"
        f" zpool clear. {f'Out: {listed}' if out else 'Which disks are out is not known'}",
        (
            (bring,),
            ("then resume the pool (A has it)", f"zpool clear {shlex.quote(pool)}"),
            ("pull nothing until then",),
        ),
        f"{pool} IS SUSPENDED: {title}",
    )


def _listed(view: MachineView, target: Target) -> str:
    """A disk that is out; where another one takes its place already, that is said."""
    words, group = view.disk(target).words, replacing(target)
    if group is None or not is_being_replaced(target):
        return words
    return f"{words}, which {view.newcomer(group).spot} replaces already"
