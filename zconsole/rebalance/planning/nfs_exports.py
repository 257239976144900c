"""The paths that the kernel's NFS server exports, by its own tables and by exportfs(8)'s."""

from __future__ import annotations

import re
from collections.abc import Iterator

from zconsole.rebalance.planning.foreign_tree import Tree

ETAB = "/var/lib/nfs/etab"
"""What exportfs(8) told the kernel; the kernel's tables hold only what clients have asked for."""
KERNEL = ("/proc/fs/nfsd/exports", "/proc/net/rpc/nfsd.export/content")
"""``PATH<TAB>DOMAIN(OPTIONS)``; a line that begins with # is a heading or no longer valid
(svc_export_show, fs/nfsd/export.c)."""
PSEUDO = "v4root"
"""The option of a directory that only leads to exported ones and shows nothing else."""
_OCTAL = re.compile(r"\\([0-7]{3})")


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
        yield unescaped(name.strip('"'))


def unescaped(text: str) -> str:
    r"""A path as the tables write it: ``\040`` is a blank. Bytes that are no UTF-8 survive."""
    data = _OCTAL.sub(lambda match: chr(int(match[1], 8) & 0xFF), _as_latin(text))
    return data.encode("latin-1").decode("utf-8", "surrogateescape")


def _as_latin(text: str) -> str:
    """A character for every byte, so that escaped bytes and plain ones can be put together."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")
