"""Layouts that can be added to a pool: vdev classes with their layouts and ashift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from zconsole.actions.plan import Situation
from zconsole.hardware.device import Device
from zconsole.pool.model import data_vdevs
from zconsole.pool.redundancy import Replication, least_redundant, replication_of
from zconsole.pool.spares import least_bytes

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


def layouts(situation: Situation) -> tuple[tuple[Layout, int], ...]:
    """Return the layouts that fit this pool, each with its number of devices; 0 is any number."""
    tops = [replication_of(v) for v in data_vdevs(situation.pool.root) if v.vclass == "normal"]
    widths: dict[Layout, int] = {}
    for top in reversed(tops):  # the newest first, whose width is offered
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
    tops = [v for v in data_vdevs(situation.pool.root) if v.vclass == "normal"]
    return (least_bytes(tops[-1]) or 0) if tops else 0


def wanted_shift(situation: Situation, layout: Layout) -> int | None:
    """Return the required ashift, that of all normal-class vdevs; None if these differ.

    A cache device may have any (spa_vdev_add, spa.c).
    """
    tops = data_vdevs(situation.pool.root)
    shifts = {top.ashift for top in tops if top.vclass == "normal"}
    return shifts.pop() if len(shifts) == 1 and layout.vclass != "cache" else None


def _own_shift(situation: Situation, devices: Sequence[Device]) -> int | None:
    """Return the ashift that zpool add would choose: the pool's property, else by the sectors.

    None where the sectors are unknown (zpool_do_add; vdev_ashift_optimize, vdev.c).
    """
    wanted = situation.facts.properties.get("ashift", "0")
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    shifts = [_device_shift(device) for device in devices]
    known = [shift for shift in shifts if shift is not None]
    return max(known) if known and len(known) == len(shifts) else None


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
