"""Counts what of a recording could not be read, and reports it once."""

from __future__ import annotations


class Gaps:
    """Counts the samples of a recording that are missing; remembers what was wrong first."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        """Where the first one is, and why it could not be read."""

    def add(self, why: str) -> None:
        """Count one; ``why`` says where it is and what is wrong."""
        self.first = self.first or why
        self.count += 1

    @property
    def words(self) -> str:
        """All of them in one line; empty when nothing is missing."""
        if not self.count:
            return ""
        many = "1 gap" if self.count == 1 else f"the first of {self.count} gaps"
        return f"{self.first} ({many} in the recording)"
