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
from zconsole.rebalance.planning.walk import CONTROL, Walk
from zconsole.system.mounts import LOCAL, mount_at, mounts_below

ANSWER_INTERVAL = 0.5
"""Seconds between two answers for a directory that is still being counted."""
CHUNK = 65536


@dataclass(slots=True)
class Measurer:
    """Lists directories at once, and counts their files, for the newest question first."""

    answer: Callable[[DirectoryListing | Measured], None]
    clock: Callable[[], float] = time.monotonic
    since: Callable[[bytes], float | None] = lambda _: None
    """Returns when the newest vdev of a path's pool was added, epoch seconds; None if unknown."""
    counts: list[Iterator[Measured | None]] = field(default_factory=list)
    """Counts in progress; the last one goes on first."""

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
            names = directories_in(os.fsencode(path))
        except OSError as error:
            self.answer(DirectoryListing(path, problem=error.strerror))
            return
        self.answer(DirectoryListing(path, tuple(names)))
        since = self.since(os.fsencode(path)) if names else None
        # Reversed, as ``advance`` takes the last one: so the first name is counted first.
        self.counts += [self._count(f"{path.rstrip('/')}/{n}", since) for n in reversed(names)]

    def advance(self) -> None:
        """Continue the newest count by one portion of files."""
        try:
            found = next(self.counts[-1])
        except StopIteration:
            self.counts.pop()
        else:
            if found is not None:
                self.answer(found)

    def _count(self, path: str, since: float | None) -> Iterator[Measured | None]:
        """Count a directory's files; yield an answer every ANSWER_INTERVAL, None between."""
        held, answered = TreeTotals(), self.clock()

        def measured(done: bool) -> Measured:
            old = None if since is None else held.old_bytes
            return Measured(path, held.bytes, held.files, done, old)

        try:
            for portion in Walk(os.fsencode(path)):
                held = held.with_portion(portion, since)
                due = self.clock() - answered >= ANSWER_INTERVAL
                answered = self.clock() if due else answered
                yield measured(done=False) if due else None
        except OSError:
            yield Measured(path, None)
        else:
            yield measured(done=True)


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


def directories_in(path: bytes) -> list[str]:
    """List the subdirectories on the same filesystem, sorted by name. Raises OSError.

    Remote mounts are not touched: their server may be dead.
    """
    silent = {each.point for each in mounts_below(path) if each.kind not in LOCAL}
    fd = open_path(Sys(), path)
    try:
        device = Sys.fstat(fd).st_dev
        with os.scandir(fd) as entries:
            names = [os.fsencode(e.name) for e in entries if e.is_dir(follow_symlinks=False)]
        asked = (n for n in names if n != CONTROL and path.rstrip(b"/") + b"/" + n not in silent)
        found = [os.fsdecode(n) for n in asked if Sys().lstat(fd, n).st_dev == device]
    finally:
        Sys.close(fd)
    return sorted(found, key=str.casefold)


def serve(measurer: Measurer, fd: int) -> None:
    """Answer questions from a descriptor until it is closed."""
    rest = b""
    while True:
        ready, _, _ = select.select([fd], [], [], 0 if measurer.counts else None)
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
