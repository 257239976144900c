"""Building blocks of tests of ``zpool status`` text."""

from __future__ import annotations

from datetime import UTC

from zconsole.pool.model import Pool, Vdev
from zconsole.zfs.decode.text import pools_of

HEAD = "  pool: tank\n state: ONLINE\nconfig:\n\n"
TABLE = "\tNAME        STATE     READ WRITE CKSUM\n"


def pool(text: str) -> Pool:
    """Return the only pool in the text."""
    (found,) = pools_of(text, UTC)
    return found


def leaf(row: str) -> Vdev:
    """Return the only device of a pool whose table ends with this row."""
    (found,) = pool(f"{HEAD}{TABLE}\ttank        ONLINE       0     0     0\n{row}").root.leaves()
    return found
