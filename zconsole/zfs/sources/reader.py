"""The methods to read a pool, the errors they raise, and the choice among them.

Also runs zpool commands: one deadline for a whole read, one exception per kind of failure.
"""

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from zconsole.pool.model import parse_version
from zconsole.system.async_process import CommandRunner
from zconsole.system.process import DeadlineError
from zconsole.system.records import parse_json
from zconsole.zfs.sources.recording import MOST_MEMORY, MOST_POOLS, memory_of

USAGE = 2
"""Exit status of zpool for an option it does not know (cmd/zpool/zpool_main.c, ``usage``)."""

POOLS = ("zpool", "list", "-H", "-o", "name")
"""Prints the names of all imported pools, or of the one named as an additional argument."""

_POOL_NAME = re.compile(r"[A-Za-z][\w.: -]{0,254}", re.ASCII)
"""Valid pool names (pool_namecheck, module/zcommon/zfs_namecheck.c)."""
_VERSION = re.compile(r"^(?:zfs|zfs-kmod)-v?(\d+\.\d+(?:\.\d+)?)", re.MULTILINE)


class PoolGoneError(Exception):
    """The pool is not imported, or no longer."""


class ReadFailedError(Exception):
    """A read failed, but the next may succeed. The text says why."""


class ReaderUnusableError(Exception):
    """A method of reading does not work on this machine; another must take over."""


_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ENOEXEC})
"""Errors of execve(2) that mean that a program is missing or cannot be run on this machine."""


def not_started(text: str, error: OSError) -> ReaderUnusableError | DeadlineError:
    """Return the error to raise for a program that could not be started, with this text.

    A lack of processes, descriptors or memory passes: then it only gives no answer this time.
    """
    return ReaderUnusableError(text) if error.errno in _NOT_THERE else DeadlineError(text)


class PoolReader(Protocol):
    """One method to read pools: the kernel's config (``libzfs``), or zpool's JSON or text."""

    @property
    def name(self) -> str:
        """The ``source`` of its samples: libzfs, json or text."""

    async def read(self, pool: str, deadline: float) -> Mapping[str, Any]:
        """Return the keys of a raw form that hold the pool's state.

        Raises DeadlineError after ``deadline`` seconds, and the three errors of this module.
        ``deadline`` applies to one attempt: the start of a helper process does not count, and if
        that process is replaced because another pool hung, a new attempt begins.
        """

    async def aclose(self) -> None:
        """Abandon whatever is in flight."""


class ReaderOption(NamedTuple):
    """A method of reading: how to create its reader, or why it is ruled out from the start."""

    name: str
    make: Callable[[], PoolReader]
    ruled_out: str = ""


class FallbackReader:
    """Uses the first candidate that works; of those that failed, only the last is tried again."""

    def __init__(self, candidates: Sequence[ReaderOption], prefer: str | None = None) -> None:
        names = [candidate.name for candidate in candidates]
        start = names.index(prefer) if prefer in names else 0
        self._left = list(candidates[start:])
        self._reasons: list[str] = [f"{prefer} requested"] if start else []
        self._reader: PoolReader | None = None
        self._abandoned: list[PoolReader] = []

    @property
    def reader(self) -> PoolReader | None:
        """The reader in use; None when no candidate is left."""
        while self._reader is None and self._left:
            candidate = self._left.pop(0)
            if candidate.ruled_out:
                self._reasons.append(candidate.ruled_out)
            else:
                self._reader = candidate.make()
        return self._reader

    @property
    def reason(self) -> str:
        """Why no better method is used, empty for the best."""
        return "; ".join(self._reasons)

    def give_up(self, reader: PoolReader, why: str) -> None:
        """Switch to the next candidate, unless another pool's read already did."""
        if reader is self._reader:
            self._reasons.append(f"{reader.name}: {why}")
            self._abandoned.append(reader)
            self._reader = None

    def try_again(self) -> None:
        """Return to the last candidate if it was given up: zpool may only be missing for a moment.

        This happens while its package is replaced. The last candidate is never ruled out.
        """
        if self.reader is None and self._abandoned:
            self._reader = self._abandoned.pop()
            self._reasons.pop()

    async def aclose(self) -> None:
        """Close every reader that was used."""
        for reader in (*self._abandoned, *filter(None, (self._reader,))):
            await reader.aclose()


class Commands:
    """Runs commands that together must end within ``deadline`` seconds from now."""

    def __init__(self, runner: CommandRunner, deadline: float) -> None:
        self._runner = runner
        self._until = asyncio.get_running_loop().time() + deadline

    async def output(self, *argv: str) -> str:
        """Run a command and return its output.

        Raises DeadlineError, also if it cannot be started now, PoolGoneError, ReadFailedError with
        the command's error text, and ReaderUnusableError if the command or an option does not
        exist.
        """
        left = max(0.001, self._until - asyncio.get_running_loop().time())
        try:
            done = await self._runner.run(argv, left)
        except OSError as error:
            raise not_started(f"{argv[0]}: {error.strerror or error}", error) from None
        if done.returncode == 0:
            return done.stdout
        why = done.stderr.strip().partition("\n")[0] or f"exit status {done.returncode}"
        if "no such pool" in why:
            raise PoolGoneError
        if done.returncode == USAGE:
            raise ReaderUnusableError(f"{' '.join(argv[:2])}: {why}")
        raise ReadFailedError(f"{' '.join(argv[:2])}: {why}")

    async def document(self, *argv: str) -> dict[str, Any]:
        """Run a command and parse its output as a JSON object; raise ReadFailedError if it is none.

        The output may be that of another machine, so it can hold anything.
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
    """Parse the pool names that the command ``POOLS`` printed.

    Raises ReadFailedError for too many names, and for other text, which a shell's profile may add.
    """
    names = tuple(printed.splitlines())
    if len(names) > MOST_POOLS:
        raise ReadFailedError(f"zpool list names more than {MOST_POOLS} pools")
    for name in names:
        if not _POOL_NAME.fullmatch(name):
            raise ReadFailedError(f"zpool list printed what is not a pool: {name[:40]!a}")
    return names


async def zpool_version(runner: CommandRunner, deadline: float) -> str | None:
    """Return the OpenZFS version by ``zpool version`` (0.8 and later), kernel before userland.

    None if zpool does not tell. Raises DeadlineError.
    """
    try:
        text = await Commands(runner, deadline).output("zpool", "version")
    except (ReaderUnusableError, ReadFailedError, PoolGoneError):
        return None
    found = _VERSION.findall(text)
    return str(found[-1]) if found else None


def has_json(version: str | None) -> bool:
    """Return whether ``zpool status -j`` exists (2.3 and later); True if the version is unknown."""
    return version is None or parse_version(version) >= (2, 3)
