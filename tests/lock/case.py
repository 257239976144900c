"""A case of the lock, and how long output is abridged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

RAISED = "raised: "
"""Prefix of the text of a case that raised."""


@dataclass(frozen=True, slots=True)
class Case:
    """One observation of the program.

    ``name`` is a path, "status/corpus/012-x": the part before the last slash names the file it is
    kept in. ``see`` returns the observation as text for people; with True nothing is abridged. Two
    calls return the same, on any machine, at any hour, whatever else runs. ``cost`` is about how
    many CPU seconds it takes: the most expensive cases start first, and the short draw counts them.
    """

    name: str
    see: Callable[[bool], str]
    cost: float = 0.01


def abridged(lines: Sequence[str], whole: bool) -> str:
    """Return the first, middle and last line as they are, and a digest of each other line."""
    kept = {0, len(lines) // 2, len(lines) - 1}
    return "\n".join(
        line if whole or at in kept else "sha256 " + digest(line) for at, line in enumerate(lines)
    )


def digest(text: str) -> str:
    """Return a short digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
