"""The one seam that spawns processes: an argument vector, a deadline, never a shell."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, TypeVar, cast

from zconsole.sources.talk import ByteProcess, Errors, Heard, LineProcess, Lines, Pipe

SCRUBBED_PREFIXES = ("ZFS_COLOR", "ZPOOL_VDEV_NAME_", "ZPOOL_SCRIPTS_", "ZPOOL_STATUS_")
"""Variables that change what zpool prints (zpool(8), Environment Variables)."""

SYSTEM_PATH = "/usr/sbin:/sbin:/usr/local/sbin"

LAST_MOMENT = 0.2
"""Seconds that a killed process has to end, unless it is stuck in the kernel."""

SETTLE_STEP = 0.01
"""Seconds between two looks at a process that was told to stop, or that is let run."""

_P = TypeVar("_P", bound=asyncio.SubprocessProtocol)


@dataclass(frozen=True, slots=True)
class Completed:
    """A finished command: its output as text (surrogate-escaped) and its exit status."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str


class DeadlineError(Exception):
    """A command did not end in time; it was told to stop and is no longer waited for.

    ``alive`` says whether it is still there: a call inside the kernel cannot be killed, and
    whoever asked must not ask again before it is gone.
    """

    def __init__(self, text: str, alive: Callable[[], bool] = lambda: False) -> None:
        super().__init__(text)
        self.alive = alive


class Runner(Protocol):
    """Runs one command to its end."""

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """The finished command. Raises DeadlineError after ``deadline`` s, OSError if absent."""


class Teller(Protocol):
    """Runs a command of the operator's own, to its end."""

    async def tell(self, argv: Sequence[str], text: str, deadline: float) -> Completed:
        """The finished command, which had ``text`` on its standard input and the operator's own
        environment. Raises DeadlineError after ``deadline`` s, OSError if absent."""


class Process(Protocol):
    """A long-lived process that talks in lines."""

    @property
    def alive(self) -> bool:
        """Whether the kernel still has it."""

    @property
    def stderr(self) -> str:
        """The newest of what it wrote to stderr."""

    async def readline(self) -> str | None:
        """Its next line without the newline; None when it has closed its output."""

    def write(self, line: str) -> None:
        """Hand it a line; lost when it is gone."""

    def abandon(self) -> None:
        """Kill it and never wait for it."""


class Spawner(Protocol):
    """Starts long-lived processes."""

    async def spawn(self, argv: Sequence[str], cwd: Path | None = None) -> Process:
        """The running process. Raises OSError when the command is absent."""


class Channel(Protocol):
    """A long-lived process that talks in bytes."""

    @property
    def alive(self) -> bool:
        """Whether the kernel still has it."""

    @property
    def stderr(self) -> str:
        """The newest of what it wrote to stderr."""

    def write(self, data: bytes) -> None:
        """Hand it at most PIPE_BUF bytes at once; lost when it is gone."""

    def abandon(self) -> None:
        """Kill it and never wait for it."""


class Connector(Protocol):
    """Starts long-lived processes that talk in bytes."""

    async def connect(self, argv: Sequence[str], heard: Heard, cwd: Path | None = None) -> Channel:
        """The running process. Raises OSError when the command is absent."""


class Keeper(Spawner, Connector, Protocol):
    """Starts long-lived processes, and knows what became of them."""

    async def settle(self, patience: float) -> None:
        """Wait at most ``patience`` seconds until what was told to stop is gone."""


def zfs_environment(base: Mapping[str, str]) -> dict[str, str]:
    """An environment in which zpool prints plain, parseable text in UTF-8 and no colour.

    Ordinary users' PATH often lacks the directories zpool is in, though they may run it.
    """
    kept = {k: v for k, v in base.items() if not k.startswith(SCRUBBED_PREFIXES)}
    path = ":".join(filter(None, (base.get("PATH", os.defpath), SYSTEM_PATH)))
    kept.update(LC_ALL="C.UTF-8", NO_COLOR="1", PATH=path)
    return kept


def find_command(name: str) -> str | None:
    """The file a command's name runs; None when it is not installed."""
    return shutil.which(name, path=zfs_environment(os.environ)["PATH"])


class ProcessRunner:
    """Runs real commands in a session of their own; one that hangs in the kernel is abandoned."""

    def __init__(self) -> None:
        self._started: list[asyncio.SubprocessTransport] = []

    async def settle(self, patience: float) -> None:
        """See Keeper.settle.

        Before Python 3.12 a child that ends after its event loop was closed is logged to stderr.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + patience
        while loop.time() < until and any(
            transport.is_closing() and transport.get_returncode() is None
            for transport in self._started
        ):
            await asyncio.sleep(SETTLE_STEP)

    def _remember(self, transport: asyncio.SubprocessTransport) -> None:
        self._started = [each for each in self._started if each.get_returncode() is None]
        self._started.append(transport)

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """See Runner.run."""
        transport, output = await _start(_Output, argv, stdin=asyncio.subprocess.DEVNULL)
        self._remember(transport)
        return await _finished(argv, transport, output, deadline)

    async def tell(self, argv: Sequence[str], text: str, deadline: float) -> Completed:
        """See Teller.tell."""
        pipe, own = asyncio.subprocess.PIPE, dict(os.environ)
        transport, output = await _start(_Output, argv, stdin=pipe, environment=own)
        self._remember(transport)
        stdin = cast("asyncio.WriteTransport | None", transport.get_pipe_transport(0))
        if stdin is not None:
            stdin.write(text.encode("utf-8", "surrogateescape"))
            stdin.write_eof()
        return await _finished(argv, transport, output, deadline)

    async def spawn(self, argv: Sequence[str], cwd: Path | None = None) -> Process:
        """See Spawner.spawn."""
        pipe = asyncio.subprocess.PIPE
        transport, lines = await _start(Lines, argv, stdin=pipe, cwd=cwd)
        self._remember(transport)
        return LineProcess(transport, lines)

    async def connect(self, argv: Sequence[str], heard: Heard, cwd: Path | None = None) -> Channel:
        """See Connector.connect."""
        stdin, stdout = Pipe(*os.pipe()), Pipe(*os.pipe())
        ours = Pipe(stdout.reading, stdin.writing)
        try:
            started = await _start(Errors, argv, stdin.reading, stdout=stdout.writing, cwd=cwd)
        except BaseException:
            for end in ours:
                os.close(end)
            raise
        finally:
            os.close(stdin.reading)
            os.close(stdout.writing)
        self._remember(started[0])
        return ByteProcess(*started, ours, heard)


class LastingRunner:
    """Runs commands that change something, and never cuts one short.

    One that is no longer waited for, because time is up or this program ends, goes on by itself:
    its output goes to a nameless file, so that it cannot fail for want of a reader.
    """

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """See Runner.run; after the deadline the command is not waited for, nor told to stop."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            process = _unwatched(argv, out, errors)
            try:
                async with asyncio.timeout(deadline):
                    while process.poll() is None:
                        await asyncio.sleep(SETTLE_STEP)
            except TimeoutError:
                text = f"{argv[0]} gave no answer in {deadline:g} s"
                raise DeadlineError(text, lambda: process.poll() is None) from None
            except asyncio.CancelledError:
                process.returncode = 0  # it is not ours to wait for
                raise
            return Completed(tuple(argv), process.returncode, _written(out), _written(errors))


class _Output(asyncio.SubprocessProtocol):
    """Collects what a command writes until it has exited and closed both streams."""

    def __init__(self) -> None:
        self.stream = {1: bytearray(), 2: bytearray()}
        self.complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open = {"exit", 1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.stream[fd] += data

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._ended(fd)

    def process_exited(self) -> None:
        self._ended("exit")

    def _ended(self, part: int | str) -> None:
        self._open.discard(part)
        if not self._open and not self.complete.done():
            self.complete.set_result(None)


async def _finished(
    argv: Sequence[str],
    transport: asyncio.SubprocessTransport,
    output: _Output,
    deadline: float,
) -> Completed:
    try:
        async with asyncio.timeout(deadline):
            await output.complete
    except TimeoutError:
        text = f"{argv[0]} gave no answer in {deadline:g} s"
        raise DeadlineError(text, lambda: transport.get_returncode() is None) from None
    finally:
        transport.close()
    streams = [bytes(output.stream[fd]).decode("utf-8", "surrogateescape") for fd in (1, 2)]
    return Completed(tuple(argv), transport.get_returncode() or 0, *streams)


async def _start(
    protocol: Callable[[], _P],
    argv: Sequence[str],
    stdin: int,
    stdout: int = asyncio.subprocess.PIPE,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[asyncio.SubprocessTransport, _P]:
    return await asyncio.get_running_loop().subprocess_exec(
        protocol,
        *argv,
        stdin=stdin,
        stdout=stdout,
        stderr=asyncio.subprocess.PIPE,
        env=zfs_environment(os.environ) if environment is None else environment,
        cwd=cwd,
        start_new_session=True,
    )


def _unwatched(argv: Sequence[str], out: IO[bytes], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=errors,
        env=zfs_environment(os.environ),
        start_new_session=True,
    )


def _written(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "surrogateescape")


def run_blocking(argv: Sequence[str], deadline: float) -> Completed:
    """``Runner.run`` for programs without an event loop; safe in a thread.

    Raises DeadlineError after ``deadline`` seconds, with the command told to stop and abandoned;
    OSError if absent.
    """
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=zfs_environment(os.environ),
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=deadline)
    except subprocess.TimeoutExpired:
        process.kill()
        _let_go(process)
        raise DeadlineError(f"{argv[0]} gave no answer in {deadline:g} s") from None
    decode = (out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "surrogateescape"))
    return Completed(tuple(argv), process.returncode, *decode)


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """Take leave of a process that was killed: one stuck in the kernel is not waited for."""
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(LAST_MOMENT)
    except subprocess.TimeoutExpired:
        process.returncode = -signal.SIGKILL


def start_detached(argv: Sequence[str], log: Path) -> int:
    """Start a program in a session of its own, its output to ``log``; returns its process id.

    It outlives this process and the terminal. Raises OSError if absent.
    """
    with log.open("ab") as stream:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env=os.environ,
            cwd="/",
            start_new_session=True,
        )
    process.returncode = 0  # it is not ours to wait for
    return process.pid
