"""zpool's refusals in the operator's words; the raw text is always kept beside them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

TABLE = Path(__file__).parents[1] / "share" / "refusals.toml"
MEANINGS: Mapping[str, str] = tomllib.loads(TABLE.read_text("utf-8"))
"""Part of zpool's message to what it means and what to do; the first that is found counts."""


def explain(text: str) -> str | None:
    """What a message of zpool means in words; None for one that is not known."""
    return next((meaning for part, meaning in MEANINGS.items() if part in text), None)
