"""Recordings and saved output, written to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.unit.zfs.sources.source_fakes import CONFIG


def sample(t: float, pool: str = "tank") -> dict[str, Any]:
    return {"t": t, "pool": pool, "libzfs": {**CONFIG, "name": pool}}


def write(path: Path, *lines: str) -> str:
    path.write_text("".join(lines))
    return str(path)


def line(found: dict[str, Any]) -> str:
    return json.dumps(found) + "\n"
