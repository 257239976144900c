"""Small files and folders of /sys, read so that no content of theirs can do harm."""

from __future__ import annotations

import os
from pathlib import Path

from zconsole.system.host import bytes_in
from zconsole.system.printable import clean

PAGE = 4096
"""Bytes that an attribute of sysfs has at most."""
LONGEST = 64
"""Characters kept of a word: names of slots, models and serial numbers are shorter."""
MOST_ENTRIES = 1 << 16
"""Entries of a folder that are looked at: more than a machine has disks, each with several paths,
a device that joins them and partitions on it, and volumes."""


def word(path: Path) -> str:
    """The text of an attribute, fit to be shown; empty if it is missing or not readable."""
    try:
        return tidy(bytes_in(path, PAGE).decode("utf-8", "surrogateescape"))
    except OSError:
        return ""


def tidy(text: str) -> str:
    """Text in one line, without padding and control characters, cut where it gets too long."""
    return clean(" ".join(text.replace("\0", " ").split()))[:LONGEST]


def names_in(folder: Path) -> tuple[str, ...]:
    """The sorted names in a folder; () if it is missing or not readable."""
    try:
        return tuple(sorted(each.name for each in folder.iterdir())[:MOST_ENTRIES])
    except OSError:
        return ()


def real(path: Path) -> Path:
    """Where a link leads; links in a circle lead nowhere in particular."""
    return Path(os.path.realpath(path))
