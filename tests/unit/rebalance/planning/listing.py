"""Faked output of zdb about files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from zconsole.rebalance.planning.facts import FactsReader, Listed
from zconsole.system.process import Completed

HEAD = """\
    Object  lvl   iblk   dblk  dsize  dnsize  lsize   %full  type
{inode:10}    2   128K   128K   256K     512   256K  100.00  ZFS plain file
Indirect blocks:
"""


def listed(texts: Mapping[int, str]) -> Listed:
    """Return files by inode, parsed from zdb's lines for them."""

    def run(argv: Sequence[str], _deadline: float) -> Completed:
        out = "".join(HEAD.format(inode=inode) + text for inode, text in texts.items())
        return Completed(tuple(argv), 0, "Dataset tank\n\n" + out, "")

    return FactsReader(run).blocks("tank", list(texts))


def status_of(number: int, size: int, block: int = 4096) -> os.stat_result:
    """Return the lstat of a file: its inode number, its length, and bytes of one of its blocks."""
    named = {"st_blocks": 8, "st_blksize": block}
    return os.stat_result((0o100644, number, 1, 1, 0, 0, size, 0, 0, 0), named)
