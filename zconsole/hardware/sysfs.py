"""Readers of small files and folders in /sys, safe against any content."""

from __future__ import annotations

import os
from pathlib import Path

from zconsole.system.host import bytes_in
from zconsole.system.printable import clean

PAGE = 4096
"""Largest size of a sysfs attribute in bytes."""
LONGEST = 64
"""Characters kept of a word; names of slots, models and serial numbers are shorter."""
MOST_ENTRIES = 1 << 16
"""Most entries of a folder that are read.

It is more than a machine has disks, with paths, multipath devices, partitions and volumes.
"""


def word(path: Path) -> str:
    """Return the text of an attribute, fit for display; empty if missing or unreadable."""
    try:
        return tidy(bytes_in(path, PAGE).decode("utf-8", "surrogateescape"))
    except OSError:
        return ""


def tidy(text: str) -> str:
    """Return text as one line without padding and control characters, cut at LONGEST."""
    return clean(" ".join(text.replace("\0", " ").split()))[:LONGEST]


def names_in(folder: Path) -> tuple[str, ...]:
    """Return the sorted names in a folder; () if missing or unreadable."""
    try:
        return tuple(sorted(each.name for each in folder.iterdir())[:MOST_ENTRIES])
    except OSError:
        return ()


def real(path: Path) -> Path:
    """Return the target of a link; a circle of links gives some path in it."""
    return Path(os.path.realpath(path))
