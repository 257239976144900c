"""Processes in an event loop: started with an argument vector and a deadline, never by a shell.

Commands run to their end; long-lived processes communicate in lines or in bytes. No other module
but ``zconsole.system.process``, for code without an event loop, starts processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Protocol, TypeVar, cast

from zconsole.system.process import Completed, DeadlineError, spawned, zfs_environment

SETTLE_STEP = 0.01
"""Seconds between two checks whether a process has ended."""
LONGEST_LINE = 2**20
"""Bytes of an output line; of a longer one, only the end is searched for matches."""

_P = TypeVar("_P", bound="_Process")


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
        self._started: list[_Process] = []
        self._output = _Output if only is None else partial(_Matches, only)

    async def settle(self, patience: float) -> None:
        """Wait at most ``patience`` seconds until the processes that were killed have ended.

        To be called before the event loop is closed: Python before 3.12 logs children that end
        later on stderr.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await _until(lambda: not any(each.is_ending for each in self._started))

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """Run a command to its end; kill and abandon it at the deadline.

        Raises DeadlineError after ``deadline`` seconds or for too much output, OSError if the
        command is absent.
        """
        null = asyncio.subprocess.DEVNULL
        output = await self._start(self._output, argv, stdin=null)
        return await output.finished(argv, deadline)

    async def tell(self, argv: Sequence[str], text: str, deadline: float) -> Completed:
        """Run a command that the operator has set, such as a hook, to its end.

        It gets ``text`` on standard input, and the unchanged environment. Raises DeadlineError
        after ``deadline`` seconds, OSError if the command is absent.
        """
        pipe, own = asyncio.subprocess.PIPE, dict(os.environ)
        output = await self._start(_Output, argv, stdin=pipe, environment=own)
        if (stdin := output.stdin) is not None:
            stdin.write(text.encode("utf-8", "surrogateescape"))
            stdin.write_eof()
        return await output.finished(argv, deadline)

    async def spawn(self, argv: Sequence[str], cwd: Path | None = None) -> LineProcess:
        """Start a process that communicates in lines. Raises OSError if the command is absent."""
        return await self._start(LineProcess, argv, stdin=asyncio.subprocess.PIPE, cwd=cwd)

    async def connect(
        self, argv: Sequence[str], heard: Heard, cwd: Path | None = None
    ) -> ByteProcess:
        """Start a process that communicates in bytes. Raises OSError if the command is absent."""
        (stdin, writing), (reading, stdout) = os.pipe(), os.pipe()
        process = ByteProcess(reading, writing, heard)
        try:
            await self._start(lambda: process, argv, stdin, stdout=stdout, cwd=cwd)
        except BaseException:
            process.close()
            raise
        finally:
            os.close(stdin)
            os.close(stdout)
        process.listen()
        return process

    async def _start(
        self,
        protocol: Callable[[], _P],
        argv: Sequence[str],
        stdin: int,
        stdout: int = asyncio.subprocess.PIPE,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> _P:
        try:
            _, process = await asyncio.get_running_loop().subprocess_exec(
                protocol,
                *argv,
                stdin=stdin,
                stdout=stdout,
                stderr=asyncio.subprocess.PIPE,
                env=zfs_environment() if environment is None else environment,
                cwd=cwd,
                start_new_session=True,  # so that Ctrl-C in the terminal does not reach it
            )
        except RuntimeError as error:
            # Python 3.11 waits for each process in a thread, which can't be started.
            raise OSError(errno.EAGAIN, str(error)) from None
        self._started = [each for each in self._started if each.alive]
        self._started.append(process)
        return process


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


class _Process(asyncio.SubprocessProtocol):
    """A process that asyncio started, and the protocol that it tells what becomes of it."""

    _transport: asyncio.SubprocessTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport, before the process is returned to who starts it."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    @property
    def alive(self) -> bool:
        """Whether the process still exists, be it stuck in the kernel."""
        return self._transport.get_returncode() is None

    @property
    def is_ending(self) -> bool:
        """Whether the process was killed and still exists."""
        return self._transport.is_closing() and self.alive

    @property
    def stdin(self) -> asyncio.WriteTransport | None:
        """Its standard input, if that is a pipe of asyncio's."""
        return cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))


class _Output(_Process):
    """A command, whose output is collected until it has exited and closed both streams."""

    def __init__(self) -> None:
        self.stream = {1: bytearray(), 2: bytearray()}
        self.complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open = {"exit", 1, 2}

    async def finished(self, argv: Sequence[str], deadline: float) -> Completed:
        """Wait for the end of the command and its output; kill and abandon it at the deadline."""
        try:
            async with asyncio.timeout(deadline):
                await self.complete
        except TimeoutError:
            text = f"{argv[0]} gave no answer in {deadline:.3g} s"
            raise DeadlineError(text, lambda: self.alive) from None
        finally:
            self._transport.close()  # kills the process if it still runs, without waiting for it
        if self.is_too_much():
            text = f"{argv[0]} wrote more than {MOST_OUTPUT >> 20} MiB"
            raise DeadlineError(text, lambda: self.alive)
        streams = [bytes(self.stream[fd]).decode("utf-8", "surrogateescape") for fd in (1, 2)]
        return Completed(tuple(argv), self._transport.get_returncode() or 0, *streams)

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


class _LastingProcess(_Process):
    """A long-lived process, of whose stderr the newest is kept."""

    def __init__(self) -> None:
        self._errors = bytearray()
        self._silent = asyncio.Event()
        """Set once stderr is closed."""

    def pipe_data_received(self, _: int, data: bytes) -> None:
        """Append to the kept stderr, of which the oldest is dropped."""
        self._errors = (self._errors + data)[-STDERR_KEPT:]

    def pipe_connection_lost(self, fd: int, _: Exception | None) -> None:
        """Note that stderr is closed."""
        if fd == 2:
            self._silent.set()

    @property
    def stderr(self) -> str:
        """The newest STDERR_KEPT bytes that it wrote to stderr, as text."""
        return bytes(self._errors).decode("utf-8", "surrogateescape")

    async def last_words(self, patience: float) -> str:
        """Wait at most ``patience`` seconds until its stderr is closed, and return it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._silent.wait()
        return self.stderr


class LineProcess(_LastingProcess):
    """A long-lived process that communicates in lines."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        """Complete lines of stdout, then None once that has ended."""
        self._ended = False
        self._rest: list[bytes] = []
        self._waiting = 0
        """Bytes that nobody has taken from the queue yet."""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Queue the lines that are complete; end the queue if more than MOST_OUTPUT waits in it."""
        if fd == 2:
            super().pipe_data_received(fd, data)
            return
        if self._ended:
            return
        self._waiting += len(data)
        if self._waiting > MOST_OUTPUT:
            self._rest.clear()
            self._end()
            return
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = b"".join((*self._rest, line))
            self._rest.clear()
            self._lines.put_nowait(whole.decode("utf-8", "surrogateescape"))
        self._rest.append(rest)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Note that stderr is closed, or end the queue when stdout is."""
        super().pipe_connection_lost(fd, exc)
        if fd == 1:
            self._end()

    async def readline(self) -> str | None:
        """Return its next line without the newline; None once it has closed its output."""
        if self._ended and self._lines.empty():
            return None
        line = await self._lines.get()
        self._waiting = max(0, self._waiting - len(line or "") - 1)
        return line

    def write(self, line: str) -> None:
        """Send it a line, which is lost if the process has ended."""
        if (pipe := self.stdin) is not None and not pipe.is_closing():
            pipe.write(f"{line}\n".encode("utf-8", "surrogateescape"))

    def abandon(self) -> None:
        """Kill the process, and never wait for it."""
        self._end()
        self._transport.close()

    def _end(self) -> None:
        """End the queue; no further line is taken in."""
        if not self._ended:
            self._ended = True
            self._lines.put_nowait(None)


class ByteProcess(_LastingProcess):
    """A long-lived process that communicates in bytes over pipes, without asyncio's transports.

    Transports would cost more CPU time than everything that is sent over them.
    """

    def __init__(self, reading: int, writing: int, heard: Heard) -> None:
        """Talk over the descriptors of our ends of its pipes, which this closes."""
        super().__init__()
        self._reading = reading
        self._writing = writing
        self._heard = heard
        self._open = True
        self._buffer = bytearray(MOST)
        self._loop = asyncio.get_running_loop()
        for end in (reading, writing):
            os.set_blocking(end, False)

    def listen(self) -> None:
        """Hear from now on what the process says."""
        self._loop.add_reader(self._reading, self._read)

    def write(self, data: bytes) -> None:
        """Send it at most PIPE_BUF bytes, in one write: if it no longer reads, all are lost."""
        if self._open:
            with contextlib.suppress(OSError):
                os.write(self._writing, data)

    def abandon(self) -> None:
        """Kill the process, and never wait for it."""
        self._transport.close()  # first, as it kills: closed pipes would make it end by itself
        self.close()

    def close(self) -> None:
        """Close the pipes; what the process says then is not heard."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._reading)
            os.close(self._reading)
            os.close(self._writing)

    def _read(self) -> None:
        try:
            count = os.readv(self._reading, [self._buffer])
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if not count:
            self.close()
        self._heard(memoryview(self._buffer)[:count])
