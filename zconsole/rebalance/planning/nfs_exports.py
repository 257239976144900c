"""The paths that the kernel's NFS server exports, by its own tables and by exportfs(8)'s."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from zconsole.rebalance.planning.foreign_tree import Tree
from zconsole.system.mounts import plain

ETAB = "/var/lib/nfs/etab"
"""What exportfs(8) told the kernel; the kernel's tables hold only what clients have asked for."""
KERNEL = ("/proc/fs/nfsd/exports", "/proc/net/rpc/nfsd.export/content")
"""``PATH<TAB>DOMAIN(OPTIONS)``; a line that begins with # is a heading or no longer valid
(svc_export_show, fs/nfsd/export.c)."""
PSEUDO = "v4root"
"""The option of a directory that only leads to exported ones and shows nothing else."""


def exported_paths(tree: Tree, tables: tuple[str, ...] = (ETAB, *KERNEL)) -> Iterator[str]:
    """The exported paths in the tables that are there. Raises UnreadableError."""
    for table in tables:
        for line in (tree.text(table) or "").splitlines():
            if line.strip() and not line.startswith("#"):
                yield from _path(line)


def _path(line: str) -> Iterator[str]:
    name, _, clients = line.partition("\t") if "\t" in line else line.partition(" ")
    options = re.split(r"[(),]", clients)
    if PSEUDO not in options:
        yield os.fsdecode(plain(os.fsencode(name.strip('"'))))
