"""What a person can do at the machine: only a simulated one has a program for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class BayContent(NamedTuple):
    """One bay of a shelf."""

    bay: str
    disk: str
    """What sits in it, in words; empty while it is empty."""


class Hands(Protocol):
    """Pulls disks out of bays, and puts others in."""

    def bays(self) -> Sequence[BayContent]:
        """Every bay, in order."""

    def drawer(self) -> Sequence[str]:
        """The disks that lie beside the machine, in words."""

    def pull(self, bay: str) -> str:
        """Pull the disk of a bay into the drawer; says what was done.

        Raises ZconsoleError where the bay is empty or there is none.
        """

    def insert(self, number: int, bay: str) -> str:
        """Put a disk of the drawer, by its place there, into an empty bay; says what was done.

        Raises ZconsoleError where that can't be.
        """

    def wait(self, seconds: float) -> str:
        """Let that much time pass at once; says so."""
