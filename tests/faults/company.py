"""Jobs with another process beside them, or something in its place."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults import trees
from tests.faults.harness import ALONE, create, run
from zconsole.rebalance.engine.aside import Aside, Start
from zconsole.rebalance.engine.item import Item
from zconsole.rebalance.engine.lookahead import Lookahead
from zconsole.rebalance.engine.making import Copied
from zconsole.rebalance.engine.syscalls import Sys

SMALL_FILES = 150
FILES, BATCH = 120, 40
Serve = Callable[[socket.socket], None]


@dataclass
class Counting(Aside):
    """Counts the copies that came back."""

    made: int = 0

    def take(self, seconds: float) -> list[tuple[Item, Copied | None]]:
        back = super().take(seconds)
        self.made += sum(copied is not None for _, copied in back)
        return back


@dataclass
class Thread:
    """In the place of the process: what happens to its messages is up to the test."""

    serve: Serve
    started: list[threading.Thread] = field(default_factory=list)

    def __call__(self, theirs: socket.socket) -> Thread:
        self.started.append(threading.Thread(target=self._serve, args=(theirs.dup(),)))
        self.started[-1].start()
        return self

    def _serve(self, channel: socket.socket) -> None:
        with channel, contextlib.suppress(OSError):
            self.serve(channel)

    def leave(self) -> None:
        for thread in self.started:
            thread.join()


def build(root: Path) -> None:
    """Every awkward kind of file, and many small ones of several owners, modes and times."""
    trees.build(root)
    rng = random.Random(1)
    for number in range(SMALL_FILES):
        path = root / f"small{number}"
        path.write_bytes(os.urandom(rng.choice((0, 1, 4096, 9000, 70_000))))
        path.chmod(rng.choice((0o600, 0o644, 0o755, 0o4711)))
        if trees.ROOT:
            os.chown(path, rng.choice((0, 99)), 0)
        os.utime(path, ns=(10**18 + number, 10**18 + 3 * number))
    os.utime(root, ns=(10**18, 10**18 + 5))


@contextlib.contextmanager
def helped(start: Start) -> Iterator[Counting]:
    """The job's end of a process, which is let go of."""
    aside = Counting(start, worth=1)
    try:
        yield aside
    finally:
        aside.leave()


def moved_whole(root: Path, aside: Counting, sys: Sys | None = None) -> dict[str, Any]:
    """Move a tree with help; every file is there, and is another."""
    before, inodes = trees.manifest(root), trees.inodes(root)
    journal = root.parent / "job.db"
    create(root, journal)
    _, summary = run(journal, sys, ALONE, aside=aside)
    assert trees.manifest(root) == before
    assert (summary["files_failed"], summary["files_moved"]) == (0, len(inodes))
    after = trees.inodes(root)
    assert all(after[name] != inode for name, inode in inodes.items())
    return summary


def forsake(aside: Aside) -> None:
    """Forget a socket that was closed with all others."""
    if aside._channel is not None:
        aside._channel.detach()
        aside._channel = None
    aside.leave()


@dataclass
class Watched:
    """What the job looks ahead with, as soon as there is any."""

    rows: list[int] = field(default_factory=list)
    """Files of every batch to come that it was told of."""
    ahead: list[Lookahead] = field(default_factory=list)

    def open_now(self) -> list[tuple[Item, Path]]:
        """Files of a batch to come that are open, with their paths."""
        items = self.ahead[-1]._items.values()
        return [(item, Path(f"/proc/self/fd/{item.source}").readlink()) for item in items]


def many(root: Path) -> Path:
    """FILES small files in some directories."""
    for number in range(FILES):
        path = root / f"d{number % 7}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d" % number * 500)
    return root


def append(path: Path) -> None:
    """Wait for the lease, then write."""
    with path.open("ab") as file:
        file.write(b"!")
