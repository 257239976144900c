"""Names of disks in /dev/disk, and the aliases of vdev_id.conf(5)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from zconsole.hardware.sysfs import tidy
from zconsole.system.host import ROOT, bytes_in

LARGEST = 1 << 20
"""Bytes of vdev_id.conf that are read."""
_OWN_ADDRESS = re.compile(r"-sas-0x[0-9a-f]+")
"""A by-path name with the disk's own SAS address: another disk in its place has another."""
_PLACE = re.compile(r"(?:pci|platform|acpi|virtio-pci|ccw)-")
"""How by-path names begin (systemd, src/udev/udev-builtin-path_id.c)."""
PARTITION = re.compile(r"-part\d+$")

DiskLinks = Mapping[str, Sequence[str]]
"""Kernel name to the links that lead to it."""


def links(root: Path = ROOT, *folders: str) -> DiskLinks:
    """The links in these folders of /dev."""
    found: dict[str, list[str]] = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            for link in sorted((root / "dev" / folder).iterdir()):
                with contextlib.suppress(OSError):
                    found.setdefault(link.readlink().name, []).append(str(link))
    return found


def is_by_place(link: str) -> bool:
    """Whether a link of by-path leads to whatever disk is plugged in there."""
    return "/by-path/" in link and not _OWN_ADDRESS.search(link)


def names_place(target: str) -> bool:
    """Whether an alias for this link, or for none that is known, is an alias of a place."""
    return not target or bool(_PLACE.match(target) and not _OWN_ADDRESS.search(target))


def ports(root: Path = ROOT) -> Mapping[str, str]:
    """Kernel name to the by-path name of where the disk is plugged in, the shortest of several."""
    found: dict[str, str] = {}
    for disk, paths in links(root, "disk/by-path").items():
        names = [Path(each).name for each in paths if is_by_place(each)]
        if names:
            found[disk] = tidy(min(names, key=lambda name: (len(name), name)))
    return found


def aliases(root: Path = ROOT) -> Mapping[str, str]:
    """Kernel name to the alias of the disk's place.

    An alias that vdev_id.conf gives to one disk, by its id, names no place: it is left out. Those
    made from channels and slots are the links of by-vdev: udev has worked them out.
    """
    by_path = {
        Path(link).name: disk
        for disk, found in links(root, "disk/by-path").items()
        for link in found
        if is_by_place(link)
    }
    known = configured(root)
    named = {by_path[target]: name for name, target in known.items() if target in by_path}
    linked = {
        disk: name
        for disk, found in links(root, "disk/by-vdev").items()
        for name in (Path(link).name for link in found)
        if not PARTITION.search(name) and names_place(known.get(name, ""))
    }
    return {disk: tidy(name) for disk, name in (named | linked).items()}


def configured(root: Path = ROOT) -> Mapping[str, str]:
    """The aliases of vdev_id.conf: name to the link it stands for, without its folder."""
    try:
        text = bytes_in(root / "etc/zfs/vdev_id.conf", LARGEST).decode("utf-8", "surrogateescape")
    except OSError:
        return {}
    rows = (line.partition("#")[0].split() for line in text.splitlines())
    return {row[1]: row[2].rpartition("/")[2] for row in rows if row[:1] == ["alias"] and row[2:]}
