"""Versions of OpenZFS as numbers that compare."""

from __future__ import annotations

import re

Version = tuple[int, ...]
_NUMBERS = re.compile(r"(?:zfs-|zfs-kmod-)?v?(\d{1,9}(?:\.\d{1,9})*)")


def parse_version(text: str | None) -> Version:
    """``2.3.9``, ``2.4.0-rc2`` or ``zfs-kmod-2.3.9-1`` as its leading numbers; () when unknown."""
    match = _NUMBERS.match(text or "")
    return tuple(int(part) for part in match[1].split(".")) if match else ()
