"""The long-lived processes of ``system.async_process``: how one talks, in lines or in bytes."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import NamedTuple, cast

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
