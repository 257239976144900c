"""Processes in an event loop: started with an argument vector and a deadline, never by a shell.

Commands run to their end; long-lived processes communicate in lines or in bytes. No other module
but ``zconsole.system.process``, for code without an event loop, starts processes.
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
"""Bytes of an output line; of a longer one, only the end is searched for matches."""

_P = TypeVar("_P", bound=asyncio.SubprocessProtocol)


class CommandRunner(Protocol):
    """Something that runs commands to their end."""

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """Run a command to its end.

        Raises DeadlineError after ``deadline`` seconds, OSError if the command is absent.
        """


class Spawner(Protocol):
    """Something that starts long-lived processes."""

    async def spawn(self, argv: Sequence[str], cwd: Path | None = None) -> LineProcess:
        """Start a process that communicates in lines. Raises OSError if the command is absent."""


class ProcessRunner:
    """Runs commands in sessions of their own, and abandons those that hang in the kernel.

    It doesn't use asyncio's streams, as these don't give access to the transport, which must be
    closed to let go of a process that is stuck in the kernel.
    """

    def __init__(self, only: re.Pattern[bytes] | None = None) -> None:
        """Keep of a command's stdout only what matches ``only``, if given: a line for each match.

        It applies to ``run``, and is matched against whole lines as they come, so that a command
        may print more than memory should hold.
        """
        self._started: list[asyncio.SubprocessTransport] = []
        self._output = _Output if only is None else partial(_Matches, only)

    async def settle(self, patience: float) -> None:
        """Wait at most ``patience`` seconds until the processes that were killed have ended.

        To be called before the event loop is closed: Python before 3.12 logs children that end
        later on stderr.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await _until(lambda: not any(map(_is_ending, self._started)))

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """Run a command to its end; kill and abandon it at the deadline.

        Raises DeadlineError after ``deadline`` seconds or for too much output, OSError if the
        command is absent.
        """
        null = asyncio.subprocess.DEVNULL
        transport, output = await self._start(self._output, argv, stdin=null)
        return await _finished(argv, transport, output, deadline)

    async def tell(self, argv: Sequence[str], text: str, deadline: float) -> Completed:
        """Run a command that the operator has set, such as a hook, to its end.

        It gets ``text`` on standard input, and the unchanged environment. Raises DeadlineError
        after ``deadline`` seconds, OSError if the command is absent.
        """
        pipe, own = asyncio.subprocess.PIPE, dict(os.environ)
        transport, output = await self._start(_Output, argv, stdin=pipe, environment=own)
        stdin = cast("asyncio.WriteTransport | None", transport.get_pipe_transport(0))
        if stdin is not None:
            stdin.write(text.encode("utf-8", "surrogateescape"))
            stdin.write_eof()
        return await _finished(argv, transport, output, deadline)

    async def spawn(self, argv: Sequence[str], cwd: Path | None = None) -> LineProcess:
        """Start a process that communicates in lines. Raises OSError if the command is absent."""
        pipe = asyncio.subprocess.PIPE
        transport, lines = await self._start(Lines, argv, stdin=pipe, cwd=cwd)
        return LineProcess(transport, lines)

    async def connect(
        self, argv: Sequence[str], heard: Heard, cwd: Path | None = None
    ) -> ByteProcess:
        """Start a process that communicates in bytes. Raises OSError if the command is absent."""
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
            start_new_session=True,  # so that Ctrl-C in the terminal does not reach it
        )
        self._started = [each for each in self._started if each.get_returncode() is None]
        self._started.append(transport)
        return transport, talk


class LastingRunner:
    """Runs commands that change something, and never stops one.

    A command continues after its deadline, and after the end of this program: its output goes to
    an unnamed file rather than a pipe, so that it can't fail for lack of a reader.
    """

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """Run a command to its end, or let it continue by itself after the deadline.

        Raises DeadlineError after ``deadline`` seconds, OSError if the command is absent.
        """
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            process = spawned(argv, out, errors, zfs_environment())
            try:
                async with asyncio.timeout(deadline):
                    await _until(lambda: process.poll() is not None)
            except TimeoutError:
                text = f"{argv[0]} gave no answer in {deadline:.3g} s"
                raise DeadlineError(text, lambda: process.poll() is None) from None
            except asyncio.CancelledError:
                process.returncode = 0  # so that Popen doesn't warn that nobody waits for it
                raise
            return Completed(tuple(argv), process.returncode, _written(out), _written(errors))


async def _until(ended: Callable[[], bool]) -> None:
    """Return once ``ended`` is true, polling: nothing tells when an abandoned process ends."""
    while True:
        if ended():
            return
        await asyncio.sleep(SETTLE_STEP)


def _is_ending(transport: asyncio.SubprocessTransport) -> bool:
    """Return whether a process was killed and still exists."""
    return transport.is_closing() and transport.get_returncode() is None


class _Output(asyncio.SubprocessProtocol):
    """Collects the output of a command until it has exited and closed both streams."""

    def __init__(self) -> None:
        self.stream = {1: bytearray(), 2: bytearray()}
        self.complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open = {"exit", 1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep output of stream ``fd``; complete early once it is too much."""
        if self.complete.done():
            return
        self.stream[fd] += data
        if self.is_too_much():
            self.complete.set_result(None)

    def is_too_much(self) -> bool:
        """Return whether the command has written more than MOST_OUTPUT."""
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
    """Collects only the matches of a pattern in the lines that a command prints, as they come."""

    def __init__(self, only: re.Pattern[bytes]) -> None:
        super().__init__()
        self._only = only
        self._rest = b""
        """Last line of the output, as long as its end has not come."""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep the matches in complete lines of stdout, and all of stderr."""
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
        transport.close()  # kills the process if it still runs, without waiting for it
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
"""Newest bytes of a long-lived process's stderr that are kept."""

MOST = 1 << 16
"""Bytes read from a process at a time: the capacity of a pipe (pipe(7))."""

MOST_OUTPUT = 64 * 2**20
"""Bytes that a command may write in all, or a long-lived process before they are taken.

The output of another machine may be anything; the status of ten thousand devices takes a tenth of
this.
"""

Heard = Callable[[memoryview], None]
"""Receives a process's stdout as it comes, and 0 bytes once that has ended.

The view is valid only during the call.
"""


class Pipe(NamedTuple):
    """Descriptors of both ends of a pipe, or one of each of two."""

    reading: int
    writing: int


class Errors(asyncio.SubprocessProtocol):
    """Keeps the newest of what a process writes to stderr."""

    def __init__(self) -> None:
        self.errors = bytearray()
        self.silent = asyncio.Event()
        """Set once stderr is closed."""

    def pipe_data_received(self, _: int, data: bytes) -> None:
        """Append to the kept stderr, of which the oldest is dropped."""
        self.errors = (self.errors + data)[-STDERR_KEPT:]

    def pipe_connection_lost(self, fd: int, _: Exception | None) -> None:
        """Note that stderr is closed."""
        if fd == 2:
            self.silent.set()


class Lines(Errors):
    """Queues the lines that a process writes to stdout, then None once it has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: asyncio.Queue[str | None] = asyncio.Queue()
        self.ended = False
        self._rest: list[bytes] = []
        self._waiting = 0
        """Bytes that nobody has taken from the queue yet."""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Queue the lines that are complete; end the queue if more than MOST_OUTPUT waits in it."""
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
        """Return the next line, waiting for it; None at the end."""
        line = await self.queue.get()
        self._waiting = max(0, self._waiting - len(line or "") - 1)
        return line

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Note that stderr is closed, or end the queue when stdout is."""
        super().pipe_connection_lost(fd, exc)
        if fd == 1:
            self.end()

    def end(self) -> None:
        """End the queue; no further line is taken in."""
        if not self.ended:
            self.ended = True
            self.queue.put_nowait(None)


class _Started:
    """A long-lived process: its state and its stderr."""

    def __init__(self, transport: asyncio.SubprocessTransport, errors: Errors) -> None:
        self._transport = transport
        self._errors = errors

    @property
    def alive(self) -> bool:
        """Whether the process still exists, be it stuck in the kernel."""
        return self._transport.get_returncode() is None

    @property
    def stderr(self) -> str:
        """The newest STDERR_KEPT bytes that it wrote to stderr, as text."""
        return bytes(self._errors.errors).decode("utf-8", "surrogateescape")

    async def last_words(self, patience: float) -> str:
        """Wait at most ``patience`` seconds until its stderr is closed, and return it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._errors.silent.wait()
        return self.stderr


class LineProcess(_Started):
    """A long-lived process that communicates in lines."""

    def __init__(self, transport: asyncio.SubprocessTransport, lines: Lines) -> None:
        super().__init__(transport, lines)
        self._lines = lines

    async def readline(self) -> str | None:
        """Return its next line without the newline; None once it has closed its output."""
        if self._lines.ended and self._lines.queue.empty():
            return None
        return await self._lines.take()

    def write(self, line: str) -> None:
        """Send it a line, which is lost if the process has ended."""
        pipe = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))
        if pipe is not None and not pipe.is_closing():
            pipe.write(f"{line}\n".encode("utf-8", "surrogateescape"))

    def abandon(self) -> None:
        """Kill the process, and never wait for it."""
        self._lines.end()
        self._transport.close()


class ByteProcess(_Started):
    """A long-lived process that communicates in bytes over pipes, without asyncio's transports.

    Transports would cost more CPU time than everything that is sent over them.
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
        """Send it at most PIPE_BUF bytes, in one write: if it no longer reads, all are lost."""
        if self._open:
            with contextlib.suppress(OSError):
                os.write(self._ours.writing, data)

    def abandon(self) -> None:
        """Kill the process, and never wait for it."""
        self._transport.close()  # first, as it kills: closed pipes would make it end by itself
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
