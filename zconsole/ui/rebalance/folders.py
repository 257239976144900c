"""The directory tree to choose from: what is listed, measured, open and marked. No drawing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from zconsole.rebalance.backend import DirectoryListing, Measured

PATIENCE = 10.0
"""Seconds after which a directory that was asked for is said not to answer."""


@dataclass(frozen=True, slots=True)
class FolderRow:
    """One line of the tree."""

    path: str
    name: str
    depth: int
    mark: str
    """``x`` marked, ``-`` inside a marked one, ``+`` with a marked one inside, or blank."""
    open: bool
    dataset: str = ""
    """Of a mountpoint whose name does not say it."""
    size: Measured | None = None
    problem: str = ""


@dataclass(slots=True)
class Folders:
    """The tree under the mountpoints of a pool. Times are seconds of one clock."""

    roots: Mapping[str, str]
    """The datasets by where they are mounted."""
    listed: dict[str, DirectoryListing] = field(default_factory=dict)
    sizes: dict[str, Measured] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    marked: dict[str, None] = field(default_factory=dict)
    """The chosen directories, in the order they were marked."""
    asked: dict[str, float] = field(default_factory=dict)
    at: str | None = None
    """The one at the cursor, where it is when the tree is shown again."""

    def take(self, answer: DirectoryListing | Measured) -> None:
        """Note what an explorer found."""
        if isinstance(answer, DirectoryListing):
            self.listed[answer.path] = answer
        else:
            self.sizes[answer.path] = answer

    def open(self, path: str, now: float) -> bool:
        """Unfold a directory; whether it still has to be asked for."""
        self.opened.add(path)
        if path in self.asked:
            return False
        self.asked[path] = now
        return True

    def close(self, path: str) -> str:
        """Fold a directory, or, where it is folded, the one it is in; returns which."""
        if path not in self.opened:
            above = map(str, PurePosixPath(path).parents)
            path = next((p for p in above if p in self.opened), path)
        self.opened.discard(path)
        return path

    def mark(self, path: str) -> str:
        """Mark or unmark a directory; returns why it cannot be, else nothing."""
        if path in self.marked:
            del self.marked[path]
            return ""
        home = self._root(path)
        for other in [p for p in self.marked if inside(path, p) or inside(p, path)]:
            if self._root(other) != home:
                upper, lower = sorted((path, other), key=len)
                return f"{lower} is a dataset inside {upper}: run a job for each"
            if inside(path, other):
                return f"included via {other}"
            del self.marked[other]
        self.marked[path] = None
        return ""

    def rows(self, now: float) -> tuple[FolderRow, ...]:
        """The lines to show, in order."""
        return tuple(self._rows(now))

    def marked_bytes(self) -> tuple[int, bool]:
        """What is marked holds, as far as it is known, and whether that is all."""
        found = [self.sizes.get(path) for path in self.marked]
        size = sum(entry.bytes or 0 for entry in found if entry is not None)
        return size, all(entry is not None and entry.done for entry in found)

    def _rows(self, now: float) -> Iterator[FolderRow]:
        for point, source in self.roots.items():
            dataset = "" if source == point.strip("/") else source
            yield self._row(point, point, 0, now, dataset)
            yield from self._below(point, 1, now)

    def _below(self, path: str, depth: int, now: float) -> Iterator[FolderRow]:
        if path not in self.opened or path not in self.listed:
            return
        for name in self.listed[path].names:
            child = str(PurePosixPath(path, name))
            yield self._row(child, name, depth, now)
            yield from self._below(child, depth + 1, now)

    def _row(self, path: str, name: str, depth: int, now: float, dataset: str = "") -> FolderRow:
        is_open = path in self.opened
        return FolderRow(
            path,
            name,
            depth,
            self._mark(path),
            is_open,
            dataset,
            self.sizes.get(path),
            self._problem(path, now) if is_open else "",
        )

    def _problem(self, path: str, now: float) -> str:
        listing = self.listed.get(path)
        if listing is None:
            late = now - self.asked.get(path, now) >= PATIENCE
            return "does not answer" if late else "looking"
        return listing.problem or ("" if listing.names else "no directories inside")

    def included(self, path: str) -> str:
        """The marked directory of the same dataset that a path is inside of; empty for none."""
        return next((p for p in self._near(path) if inside(path, p)), "")

    def _mark(self, path: str) -> str:
        if path in self.marked:
            return "x"
        if self.included(path):
            return "-"
        return "+" if any(inside(p, path) for p in self._near(path)) else " "

    def _near(self, path: str) -> list[str]:
        """The marked directories below the same mountpoint."""
        home = self._root(path)
        return [p for p in self.marked if self._root(p) == home]

    def _root(self, path: str) -> str:
        """The mountpoint a path belongs to: the longest that it is, or is in."""
        homes = [point for point in self.roots if path == point or inside(path, point)]
        return max(homes, key=len, default="")


def inside(path: str, other: str) -> bool:
    """Whether a path lies in another directory."""
    return path != other and path.startswith(other.rstrip("/") + "/")
