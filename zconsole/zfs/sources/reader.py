"""The ways to read a pool: what is asked of each, how it can fail, and which is used.

And zpool run for its output: one deadline for a whole read, an exception for each failure.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from zconsole.pool.model import parse_version
from zconsole.system.async_process import CommandRunner
from zconsole.system.records import parse_json
from zconsole.zfs.sources.recording import MOST_MEMORY, MOST_POOLS, memory_of

USAGE = 2
"""Exit status of an option this zpool does not know (cmd/zpool/zpool_main.c, ``usage``)."""

POOLS = ("zpool", "list", "-H", "-o", "name")
"""Prints the names of all imported pools, or of the one that is named after it."""

_POOL_NAME = re.compile(r"[A-Za-z][\w.: -]{0,254}", re.ASCII)
"""See pool_namecheck, module/zcommon/zfs_namecheck.c."""
_VERSION = re.compile(r"^(?:zfs|zfs-kmod)-v?(\d+\.\d+(?:\.\d+)?)", re.MULTILINE)


class PoolGoneError(Exception):
    """The pool is not imported (any more)."""


class ReadFailedError(Exception):
    """A read that gave nothing; the next may. The text says why."""


class ReaderUnusableError(Exception):
    """A way of reading that does not work on this machine; another must take over."""


class PoolReader(Protocol):
    """One way to read pools: the kernel's config (``libzfs``), or zpool's JSON or text."""

    @property
    def name(self) -> str:
        """libzfs, json or text: the ``source`` of its samples."""

    async def read(self, pool: str, deadline: float) -> Mapping[str, Any]:
        """The keys of a raw form that hold the pool's state.

        Raises DeadlineError after ``deadline`` seconds, and the three errors of this module.
        ``deadline`` is that of one attempt: the start of a helper process does not count, and where
        that is replaced because another pool hung, a new attempt begins.
        """

    async def aclose(self) -> None:
        """Abandon whatever is in flight."""


class ReaderOption(NamedTuple):
    """A way to read: how to make its reader, or why it is ruled out from the start."""

    name: str
    make: Callable[[], PoolReader]
    ruled_out: str = ""


class FallbackReader:
    """Uses the first candidate that works; never goes back to one that failed."""

    def __init__(self, candidates: Sequence[ReaderOption], prefer: str | None = None) -> None:
        names = [candidate.name for candidate in candidates]
        start = names.index(prefer) if prefer in names else 0
        self._left = list(candidates[start:])
        self._reasons: list[str] = [f"{prefer} requested"] if start else []
        self._reader: PoolReader | None = None
        self._abandoned: list[PoolReader] = []

    @property
    def reader(self) -> PoolReader | None:
        """The reader in use; None when no way is left."""
        while self._reader is None and self._left:
            candidate = self._left.pop(0)
            if candidate.ruled_out:
                self._reasons.append(candidate.ruled_out)
            else:
                self._reader = candidate.make()
        return self._reader

    @property
    def reason(self) -> str:
        """Why no better way is used, empty for the best."""
        return "; ".join(self._reasons)

    def give_up(self, reader: PoolReader, why: str) -> None:
        """Go on with the next way, unless another pool's read did already."""
        if reader is self._reader:
            self._reasons.append(f"{reader.name}: {why}")
            self._abandoned.append(reader)
            self._reader = None

    async def aclose(self) -> None:
        """Close every reader ever used."""
        for reader in (*self._abandoned, *filter(None, (self._reader,))):
            await reader.aclose()


class Commands:
    """Commands that together must end ``deadline`` seconds from now."""

    def __init__(self, runner: CommandRunner, deadline: float) -> None:
        self._runner = runner
        self._until = asyncio.get_running_loop().time() + deadline

    async def output(self, *argv: str) -> str:
        """What the command printed.

        Raises DeadlineError, PoolGoneError, ReadFailedError with its last words, and
        ReaderUnusableError when the command or an option does not exist.
        """
        left = max(0.001, self._until - asyncio.get_running_loop().time())
        try:
            done = await self._runner.run(argv, left)
        except OSError as error:
            raise ReaderUnusableError(f"{argv[0]}: {error.strerror or error}") from None
        if done.returncode == 0:
            return done.stdout
        why = done.stderr.strip().partition("\n")[0] or f"exit status {done.returncode}"
        if "no such pool" in why:
            raise PoolGoneError
        if done.returncode == USAGE:
            raise ReaderUnusableError(f"{' '.join(argv[:2])}: {why}")
        raise ReadFailedError(f"{' '.join(argv[:2])}: {why}")

    async def document(self, *argv: str) -> dict[str, Any]:
        """Its output as a JSON object; raises ReadFailedError when it is none.

        Another machine's may hold anything.
        """
        text = await self.output(*argv)
        if memory_of(text) > MOST_MEMORY:
            raise ReadFailedError(f"{' '.join(argv[:2])} printed too many values")
        try:
            found = parse_json(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ReadFailedError(f"{' '.join(argv[:2])} printed no whole JSON document")
        return found


def pool_names(printed: str) -> tuple[str, ...]:
    """The pools that ``POOLS`` printed.

    Raises ReadFailedError for too many, and for other text, which a shell's profile may add.
    """
    names = tuple(printed.splitlines())
    if len(names) > MOST_POOLS:
        raise ReadFailedError(f"zpool list names more than {MOST_POOLS} pools")
    for name in names:
        if not _POOL_NAME.fullmatch(name):
            raise ReadFailedError(f"zpool list printed what is not a pool: {name[:40]!a}")
    return names


async def zpool_version(runner: CommandRunner, deadline: float) -> str | None:
    """The running OpenZFS as ``zpool version`` (0.8 and later) says, kernel before userland."""
    try:
        text = await Commands(runner, deadline).output("zpool", "version")
    except (ReaderUnusableError, ReadFailedError, PoolGoneError):
        return None
    found = _VERSION.findall(text)
    return str(found[-1]) if found else None


def has_json(version: str | None) -> bool:
    """Whether ``zpool status -j`` exists: from 2.3; unknown counts as yes, it will be seen."""
    return version is None or parse_version(version) >= (2, 3)
