"""Helpers of the long-running proofs: where they keep their progress, and how they print it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

INTERRUPTED = 130
"""The exit status of a proof that was stopped."""


def cache(name: str) -> Path:
    """Return `$ZCONSOLE_NAME_CACHE`, else zconsole/NAME in the XDG cache directory."""
    chosen = os.environ.get(f"ZCONSOLE_{name.upper()}_CACHE")
    xdg = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(xdg) / "zconsole" / name


def digest(files: Iterable[Path]) -> str:
    """Return a digest of the tested code and the proof; when it changes, all is tried again."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:16]


def table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return the rows as aligned lines: ``left`` columns flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
