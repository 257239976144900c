"""The one seam that spawns processes: an argument vector, a deadline, never a shell.

Here for an event loop: commands that run to their end, and long-lived processes, which talk in
lines or in bytes. ``zconsole.system.process`` has what runs without a loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, Protocol, TypeVar, cast

from zconsole.system.process import Completed, DeadlineError, spawned, zfs_environment

SETTLE_STEP = 0.01
"""Seconds between two checks whether a process has ended."""
LONGEST_LINE = 2**20
"""Bytes of a line; of a longer one only the end is searched."""

_P = TypeVar("_P", bound=asyncio.SubprocessProtocol)


class CommandRunner(Protocol):
    """Runs one command to its end."""

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """The finished command. Raises DeadlineError after ``deadline`` s, OSError if absent."""


class Spawner(Protocol):
    """Starts long-lived processes."""

    async def spawn(self, argv: Sequence[str], cwd: Path | None = None) -> LineProcess:
        """The running process. Raises OSError when the command is absent."""


class ProcessRunner:
    """Runs real commands in a session of their own; one that hangs in the kernel is abandoned.

    Not by asyncio's streams: they give no hold of the transport, and only that can be closed while
    its process is stuck in the kernel.
    """

    def __init__(self, only: re.Pattern[bytes] | None = None) -> None:
        """``only``: what ``run`` keeps of whole lines of stdout, each match as a line of its own.

        A command may then print more than memory should hold.
        """
        self._started: list[asyncio.SubprocessTransport] = []
        self._output = _Output if only is None else partial(_Matches, only)

    async def settle(self, patience: float) -> None:
        """Wait at most ``patience`` seconds until what was killed is gone.

        Before Python 3.12 a child that ends after its event loop was closed is logged to stderr.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await _until(lambda: not any(map(_is_ending, self._started)))

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """See CommandRunner.run."""
        null = asyncio.subprocess.DEVNULL
        transport, output = await self._start(self._output, argv, stdin=null)
        return await _finished(argv, transport, output, deadline)

    async def tell(self, argv: Sequence[str], text: str, deadline: float) -> Completed:
        """Run a command of the operator's own, to its end.

        It has ``text`` on its standard input and the operator's own environment. Raises
        DeadlineError after ``deadline`` s, OSError if absent.
        """
        pipe, own = asyncio.subprocess.PIPE, dict(os.environ)
        transport, output = await self._start(_Output, argv, stdin=pipe, environment=own)
        stdin = cast("asyncio.WriteTransport | None", transport.get_pipe_transport(0))
        if stdin is not None:
            stdin.write(text.encode("utf-8", "surrogateescape"))
            stdin.write_eof()
        return await _finished(argv, transport, output, deadline)

    async def spawn(self, argv: Sequence[str], cwd: Path | None = None) -> LineProcess:
        """See Spawner.spawn."""
        pipe = asyncio.subprocess.PIPE
        transport, lines = await self._start(Lines, argv, stdin=pipe, cwd=cwd)
        return LineProcess(transport, lines)

    async def connect(
        self, argv: Sequence[str], heard: Heard, cwd: Path | None = None
    ) -> ByteProcess:
        """A process that talks in bytes. Raises OSError when the command is absent."""
        stdin, stdout = Pipe(*os.pipe()), Pipe(*os.pipe())
        ours = Pipe(stdout.reading, stdin.writing)
        try:
            started = await self._start(Errors, argv, stdin.reading, stdout=stdout.writing, cwd=cwd)
        except BaseException:
            for end in ours:
                os.close(end)
            raise
        finally:
            os.close(stdin.reading)
            os.close(stdout.writing)
        return ByteProcess(*started, ours, heard)

    async def _start(
        self,
        protocol: Callable[[], _P],
        argv: Sequence[str],
        stdin: int,
        stdout: int = asyncio.subprocess.PIPE,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> tuple[asyncio.SubprocessTransport, _P]:
        transport, talk = await asyncio.get_running_loop().subprocess_exec(
            protocol,
            *argv,
            stdin=stdin,
            stdout=stdout,
            stderr=asyncio.subprocess.PIPE,
            env=zfs_environment() if environment is None else environment,
            cwd=cwd,
            start_new_session=True,
        )
        self._started = [each for each in self._started if each.get_returncode() is None]
        self._started.append(transport)
        return transport, talk


class LastingRunner:
    """Runs commands that change something, and never cuts one short.

    A command that is no longer waited for, after the deadline or at the end of this program,
    continues: its output goes to a nameless file, so that it cannot fail without a reader.
    """

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """See CommandRunner.run; after the deadline it is not waited for, nor stopped."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            process = spawned(argv, out, errors, zfs_environment())
            try:
                async with asyncio.timeout(deadline):
                    await _until(lambda: process.poll() is not None)
            except TimeoutError:
                text = f"{argv[0]} gave no answer in {deadline:.3g} s"
                raise DeadlineError(text, lambda: process.poll() is None) from None
            except asyncio.CancelledError:
                process.returncode = 0  # it is not ours to wait for
                raise
            return Completed(tuple(argv), process.returncode, _written(out), _written(errors))


async def _until(ended: Callable[[], bool]) -> None:
    """Return once it has ended: there is no notification for an unwatched process."""
    while True:
        if ended():
            return
        await asyncio.sleep(SETTLE_STEP)


def _is_ending(transport: asyncio.SubprocessTransport) -> bool:
    """Whether a process was killed and is still there."""
    return transport.is_closing() and transport.get_returncode() is None


class _Output(asyncio.SubprocessProtocol):
    """Collects what a command writes until it has exited and closed both streams."""

    def __init__(self) -> None:
        self.stream = {1: bytearray(), 2: bytearray()}
        self.complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open = {"exit", 1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep what was written to stream ``fd``; complete once it is too much."""
        if self.complete.done():
            return
        self.stream[fd] += data
        if self.is_too_much():
            self.complete.set_result(None)

    def is_too_much(self) -> bool:
        """Whether the command writes too much."""
        return sum(map(len, self.stream.values())) > MOST_OUTPUT

    def pipe_connection_lost(self, fd: int, _: Exception | None) -> None:
        """Note that stream ``fd`` is closed."""
        self._ended(fd)

    def process_exited(self) -> None:
        """Note that the command has ended."""
        self._ended("exit")

    def _ended(self, part: int | str) -> None:
        self._open.discard(part)
        if not self._open and not self.complete.done():
            self.complete.set_result(None)


class _Matches(_Output):
    """Collects what matches of the lines a command prints, piece by piece as they come."""

    def __init__(self, only: re.Pattern[bytes]) -> None:
        super().__init__()
        self._only = only
        self._rest = b""
        """The last line, as far as it has come."""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep the matches in the whole lines of the output, and all that are errors."""
        if fd == 1:
            lines, newline, self._rest = (self._rest + data).rpartition(b"\n")
            self._rest = self._rest[-LONGEST_LINE:]
            data = b"".join(match[0] + newline for match in self._only.finditer(lines))
        super().pipe_data_received(fd, data)


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
        text = f"{argv[0]} gave no answer in {deadline:.3g} s"
        raise DeadlineError(text, lambda: transport.get_returncode() is None) from None
    finally:
        transport.close()
    if output.is_too_much():
        text = f"{argv[0]} wrote more than {MOST_OUTPUT >> 20} MiB"
        raise DeadlineError(text, lambda: transport.get_returncode() is None)
    streams = [bytes(output.stream[fd]).decode("utf-8", "surrogateescape") for fd in (1, 2)]
    return Completed(tuple(argv), transport.get_returncode() or 0, *streams)


def _written(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "surrogateescape")


# Long-lived processes

STDERR_KEPT = 4096
"""Bytes of a long-lived process's stderr that are kept, the newest."""

MOST = 1 << 16
"""Bytes taken from a process at a time: what a pipe holds."""

MOST_OUTPUT = 64 * 2**20
"""Bytes that a command may write to its end, or a long-lived one before they are taken: another
machine's may be anything, and a status of ten thousand devices is a tenth of it."""

Heard = Callable[[memoryview], None]
"""Receives a process's stdout as it comes; 0 bytes once it has ended. The view is valid only
during the call."""


class Pipe(NamedTuple):
    """Both ends of a pipe."""

    reading: int
    writing: int


class Errors(asyncio.SubprocessProtocol):
    """Keeps what a process writes to stderr."""

    def __init__(self) -> None:
        self.errors = bytearray()
        self.silent = asyncio.Event()
        """Set once there will be no more."""

    def pipe_data_received(self, _: int, data: bytes) -> None:
        """See asyncio.SubprocessProtocol."""
        self.errors = (self.errors + data)[-STDERR_KEPT:]

    def pipe_connection_lost(self, fd: int, _: Exception | None) -> None:
        """See asyncio.SubprocessProtocol."""
        if fd == 2:
            self.silent.set()


class Lines(Errors):
    """Queues what a process writes to stdout, a line at a time; None once it has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: asyncio.Queue[str | None] = asyncio.Queue()
        self.ended = False
        self._rest: list[bytes] = []
        self._waiting = 0
        """Bytes not read yet."""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """See asyncio.SubprocessProtocol; of one that writes without end, nothing more is kept."""
        if fd == 2:
            super().pipe_data_received(fd, data)
            return
        if self.ended:
            return
        self._waiting += len(data)
        if self._waiting > MOST_OUTPUT:
            self._rest.clear()
            self.end()
            return
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = b"".join((*self._rest, line))
            self._rest.clear()
            self.queue.put_nowait(whole.decode("utf-8", "surrogateescape"))
        self._rest.append(rest)

    async def take(self) -> str | None:
        """The next line; None at the end."""
        line = await self.queue.get()
        self._waiting = max(0, self._waiting - len(line or "") - 1)
        return line

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """See asyncio.SubprocessProtocol."""
        super().pipe_connection_lost(fd, exc)
        if fd == 1:
            self.end()

    def end(self) -> None:
        """No further line will come."""
        if not self.ended:
            self.ended = True
            self.queue.put_nowait(None)


class _Started:
    """What every long-lived process has."""

    def __init__(self, transport: asyncio.SubprocessTransport, errors: Errors) -> None:
        self._transport = transport
        self._errors = errors

    @property
    def alive(self) -> bool:
        """Whether the kernel still has it."""
        return self._transport.get_returncode() is None

    @property
    def stderr(self) -> str:
        """The newest of what it wrote to stderr."""
        return bytes(self._errors.errors).decode("utf-8", "surrogateescape")

    async def last_words(self, patience: float) -> str:
        """Its stderr once that has ended, at most ``patience`` seconds later."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._errors.silent.wait()
        return self.stderr


class LineProcess(_Started):
    """A long-lived process that talks in lines."""

    def __init__(self, transport: asyncio.SubprocessTransport, lines: Lines) -> None:
        super().__init__(transport, lines)
        self._lines = lines

    async def readline(self) -> str | None:
        """Its next line without the newline; None when it has closed its output."""
        if self._lines.ended and self._lines.queue.empty():
            return None
        return await self._lines.take()

    def write(self, line: str) -> None:
        """Send it a line; lost if it has ended."""
        pipe = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))
        if pipe is not None and not pipe.is_closing():
            pipe.write(f"{line}\n".encode("utf-8", "surrogateescape"))

    def abandon(self) -> None:
        """Kill it and never wait for it."""
        self._lines.end()
        self._transport.close()


class ByteProcess(_Started):
    """A long-lived process that talks in bytes: its pipes are read and written directly.

    Asyncio's transports would cost more than all that is said over them.
    """

    def __init__(
        self, transport: asyncio.SubprocessTransport, errors: Errors, ours: Pipe, heard: Heard
    ) -> None:
        super().__init__(transport, errors)
        self._ours = ours
        self._heard = heard
        self._open = True
        self._buffer = bytearray(MOST)
        self._loop = asyncio.get_running_loop()
        for end in ours:
            os.set_blocking(end, False)
        self._loop.add_reader(ours.reading, self._read)

    def write(self, data: bytes) -> None:
        """Hand it at most PIPE_BUF bytes at once: all of them or, where it reads no more, none."""
        if self._open:
            with contextlib.suppress(OSError):
                os.write(self._ours.writing, data)

    def abandon(self) -> None:
        """Kill it and never wait for it."""
        self._transport.close()  # kills it first: without its pipes it would end by itself
        self._close()

    def _read(self) -> None:
        try:
            count = os.readv(self._ours.reading, [self._buffer])
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if not count:
            self._close()
        self._heard(memoryview(self._buffer)[:count])

    def _close(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._ours.reading)
            for end in self._ours:
                os.close(end)
