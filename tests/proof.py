"""What the long proofs share: where they keep how far they are, and how they print it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

INTERRUPTED = 130
"""The exit status of a proof that was stopped."""


def cache(name: str) -> Path:
    """`$ZCONSOLE_NAME_CACHE`, else zconsole/NAME under the XDG cache directory."""
    chosen = os.environ.get(f"ZCONSOLE_{name.upper()}_CACHE")
    xdg = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(xdg) / "zconsole" / name


def digest(files: Iterable[Path]) -> str:
    """Of what is tested, and of the proof: after a change all is tried again."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:16]


def table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """The rows as lines; the first so many columns are set to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
