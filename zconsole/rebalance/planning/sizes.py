"""Sizes of directories, measured by a separate process that speaks JSON lines.

The caller can kill it at any moment, even while it waits for a pool that does not answer, and
counting a million files does not slow the screen. It calls lstat only, as ``walk`` does.

Lines in: ``{"open": PATH}`` for a directory's subdirectories and their sizes, ``{"used": PATH}``
for the bytes used on the filesystem mounted there. Lines out: ``{"listing": …}`` and
``{"measured": …}``, with the fields of ``DirectoryListing`` and ``Measured``.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field

from zconsole.rebalance.backend import DirectoryListing, Measured
from zconsole.rebalance.engine.directories import open_path
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.planning.facts import FactsReader, mount_of
from zconsole.rebalance.planning.survey import TreeTotals
from zconsole.rebalance.planning.walk import CONTROL, Portion, Walk
from zconsole.system.mounts import LOCAL, mount_at, mounts_below

SLICE = 0.1
"""Seconds of counting between two checks for new questions."""
ANSWER_INTERVAL = 0.5
"""Seconds between two answers for a directory that is still being counted."""
CHUNK = 65536

Answer = Callable[[DirectoryListing | Measured], None]


@dataclass(slots=True)
class _Count:
    """Count in progress for one directory."""

    path: str
    portions: Iterator[Portion]
    since: float | None
    """When the newest vdev was added, epoch seconds."""
    held: TreeTotals = field(default_factory=TreeTotals)
    answered: float = 0.0


@dataclass(slots=True)
class Measurer:
    """Lists directories at once, and counts their files, for the newest question first."""

    answer: Answer
    clock: Callable[[], float] = time.monotonic
    since: Callable[[bytes], float | None] = lambda _: None
    """Returns when the newest vdev of a path's pool was added, epoch seconds; None if unknown."""
    _sys: Sys = field(default_factory=Sys)
    _counts: list[_Count] = field(default_factory=list)

    @property
    def busy(self) -> bool:
        """Whether any count is in progress."""
        return bool(self._counts)

    def ask(self, question: dict[str, str]) -> None:
        """Answer a question at once as far as possible; ``advance`` counts the rest."""
        if (path := question.get("used")) is not None:
            used = None
            with contextlib.suppress(OSError):
                status = os.statvfs(path)
                used = (status.f_blocks - status.f_bfree) * status.f_frsize
            self.answer(Measured(path, used))
            return
        path = question["open"]
        try:
            names = directories_in(self._sys, os.fsencode(path))
        except OSError as error:
            self.answer(DirectoryListing(path, problem=error.strerror))
            return
        self.answer(DirectoryListing(path, tuple(names)))
        # Reversed, as ``advance`` takes the last one: so the first name is counted first.
        paths = [f"{path.rstrip('/')}/{name}" for name in reversed(names)]
        since = self.since(os.fsencode(path)) if paths else None
        self._counts += [_Count(p, iter(Walk(self._sys, [os.fsencode(p)])), since) for p in paths]

    def advance(self) -> None:
        """Continue the newest count for ``SLICE`` seconds, answering every ``ANSWER_INTERVAL``."""
        count, until = self._counts[-1], self.clock() + SLICE
        try:
            for portion in count.portions:
                count.held = count.held.with_portion(portion, count.since)
                if self.clock() >= until:
                    break
            else:
                self._counts.remove(count)
        except OSError:
            self._counts.remove(count)
            self.answer(Measured(count.path, None))
            return
        done = count not in self._counts
        if done or self.clock() - count.answered >= ANSWER_INTERVAL:
            count.answered = self.clock()
            files, size, old = count.held
            known = None if count.since is None else old
            self.answer(Measured(count.path, size, files, done, known))


def additions(reader: FactsReader) -> Callable[[bytes], float | None]:
    """Return a function that tells when the newest vdev of a path's pool was added, epoch seconds.

    It reads each pool's history once, which requires root.
    """
    added = functools.cache(reader.added)

    def _since(path: bytes) -> float | None:
        try:
            mount = mount_of(mount_at(path))
        except OSError:
            return None
        if mount is None or mount.kind != b"zfs" or os.geteuid() != 0:
            return None
        return added(os.fsdecode(mount.source).split("/")[0])

    return _since


def directories_in(sys: Sys, path: bytes) -> list[str]:
    """List the subdirectories on the same filesystem, sorted by name. Raises OSError.

    Remote mounts are not touched: their server may be dead.
    """
    silent = {each.point for each in mounts_below(path) if each.kind not in LOCAL}
    fd = open_path(sys, path)
    try:
        device = sys.fstat(fd).st_dev
        with os.scandir(fd) as entries:
            names = [os.fsencode(e.name) for e in entries if e.is_dir(follow_symlinks=False)]
        asked = (n for n in names if n != CONTROL and path.rstrip(b"/") + b"/" + n not in silent)
        found = [os.fsdecode(n) for n in asked if sys.lstat(fd, n).st_dev == device]
    finally:
        sys.close(fd)
    return sorted(found, key=str.casefold)


def serve(measurer: Measurer, fd: int) -> None:
    """Answer questions from a descriptor until it is closed."""
    rest = b""
    while True:
        ready, _, _ = select.select([fd], [], [], 0 if measurer.busy else None)
        if not ready:
            measurer.advance()
            continue
        data = os.read(fd, CHUNK)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            measurer.ask(json.loads(line))


def _print(answer: DirectoryListing | Measured) -> None:
    kind = "listing" if isinstance(answer, DirectoryListing) else "measured"
    sys.stdout.write(json.dumps({kind: asdict(answer)}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve(Measurer(_print, since=additions(FactsReader())), sys.stdin.fileno())
