"""Making a disk without a locate LED blink: short reads, half a second on and half a second off.

Nothing is written. The reads are made by a process of its own, since a dying disk may hang it in
the kernel, where nothing can end it: nobody waits for it. It ends with the process that started it,
or when its time is over. Run as ``python -m zconsole.hardware.blink``.
"""

from __future__ import annotations

import argparse
import errno
import mmap
import os
import random
import stat
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from zconsole.errors import UsageError, ZconsoleError
from zconsole.hardware.machine import SKIPPED
from zconsole.system.host import ROOT, alive, process_mark
from zconsole.system.launcher import own
from zconsole.system.patient import NoAnswerError, Patient
from zconsole.system.process import Child
from zconsole.zfs.sources.blockdev import diskstats_rows

LASTING = 1800.0
"""Seconds a disk blinks, unless it is stopped before."""
HALF = 0.5
"""Seconds of reading, and of not reading."""
READS = 20
"""Reads in each half second: enough to see, and a hard disk's heads are free for others."""
BLOCK = 4096
"""Bytes of a read: a sector of every disk, and what O_DIRECT may demand."""
START = 30.0
"""Seconds for the process to start, on a machine that a resilver keeps busy, and open the disk."""
BLINKING = "blinking"
"""The word of the process once it reads."""

WINDOW = 0.4
"""Seconds over which it is measured which disks are busy."""
BUSY = 0.02
"""Share of time with I/O from which a disk's own light flickers."""
IO_TIME = 12
"""Word of a row of /proc/diskstats: milliseconds with I/O in flight (iostats.rst)."""

GONE = (errno.ENXIO, errno.ENODEV, errno.ENOMEDIUM)


class Blinker:
    """The disks that this process makes blink; all end with it."""

    def __init__(self) -> None:
        self._children: dict[str, Child] = {}

    def start(self, node: str, seconds: float = LASTING) -> None:
        """Make a disk blink; ``node`` is its device in /dev. Takes at most a few seconds.

        Raises ZconsoleError where it can't be read: a file, a disk that is gone or doesn't answer.
        """
        self.stop(node)
        watch = ("--watch", process_mark(os.getpid()) or "")
        child = Child(own("zconsole.hardware.blink", "--seconds", str(seconds), *watch, node))
        self._children[node] = child
        try:
            word = Patient().call(child.line, START)
        except NoAnswerError:
            self.stop(node)
            raise ZconsoleError(f"{node} doesn't answer, so it doesn't blink") from None
        if word != BLINKING:
            self.stop(node)
            raise ZconsoleError(word or f"{node} can't be read")

    def stop(self, node: str) -> bool:
        """Stop it; returns whether it was blinking."""
        child = self._children.pop(node, None)
        if child is None:
            return False
        was = child.running
        child.kill()
        return was

    def stop_all(self) -> int:
        """Stop all; returns how many were blinking."""
        return sum([self.stop(node) for node in list(self._children)])


def busy_disks(
    root: Path = ROOT, wait: Callable[[float], object] = time.sleep
) -> Mapping[str, float]:
    """The disks that do I/O now, by kernel name, with the share of time; the busiest first.

    Takes the time of WINDOW.
    """
    before = diskstats_rows(root)
    wait(WINDOW)
    after = diskstats_rows(root)
    shares = {
        name: min(1.0, (_io_time(row) - _io_time(before[name])) / 1000 / WINDOW)
        for name, row in after.items()
        if name in before and _is_disk(root, name)
    }
    busy = {name: share for name, share in shares.items() if share >= BUSY}
    return dict(sorted(busy.items(), key=lambda pair: -pair[1]))


def main(argv: Sequence[str] | None = None) -> int:
    """Read a disk in bursts until the time is over or whoever started it is gone."""
    args = _parser().parse_args(argv)
    end = time.monotonic() + args.seconds
    try:
        read = reader(args.node)
    except OSError as error:
        _say(f"{args.node}: {error.strerror}")
        return 1
    except ZconsoleError as error:
        _say(str(error))
        return 1
    _say(BLINKING)

    def _over() -> bool:
        return time.monotonic() >= end or not alive(args.watch)

    blink(read, _over, time.sleep)
    return 0


def blink(
    read: Callable[[], object], over: Callable[[], bool], wait: Callable[[float], object]
) -> None:
    """Call ``read`` in bursts until it is over, or until the disk is gone.

    A read that fails counts, too: a failing disk shows that it was asked.
    """
    while not over():
        for _ in range(READS):
            try:
                read()
            except OSError as error:
                if error.errno in GONE:
                    return
            wait(HALF / READS)
        wait(HALF)


def reader(node: str) -> Callable[[], object]:
    """Reads one block of a disk at a random place, past every cache where that is possible.

    Raises UsageError for what is not a disk, OSError.
    """
    handle = _opened(node)
    if not is_disk(handle):
        os.close(handle)
        raise UsageError(f"{node} is not a disk: only a disk can blink")
    blocks = max(1, os.lseek(handle, 0, os.SEEK_END) // BLOCK)
    buffer = mmap.mmap(-1, BLOCK)  # aligned to a page, as O_DIRECT demands

    def _read() -> None:
        os.preadv(handle, [buffer], random.randrange(blocks) * BLOCK)

    return _read


def is_disk(handle: int) -> bool:
    """Whether a descriptor is of a block device."""
    return stat.S_ISBLK(os.fstat(handle).st_mode)


def _opened(node: str) -> int:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(node, flags | os.O_DIRECT)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.open(node, flags)


def _io_time(row: str) -> int:
    words = row.split()
    return int(words[IO_TIME]) if len(words) > IO_TIME else 0


def _is_disk(root: Path, name: str) -> bool:
    return not name.startswith(SKIPPED) and (root / "sys/block" / name).exists()


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="zconsole.hardware.blink", allow_abbrev=False)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--watch", required=True)
    parser.add_argument("node")
    return parser


if __name__ == "__main__":
    sys.exit(main())
