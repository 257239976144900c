"""Devices of the device mapper, made through its ioctls (linux/dm-ioctl.h): no dmsetup needed."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

SECTOR = 512
_CONTROL = "/dev/mapper/control"
_HEAD = struct.Struct("=III IIIiIIIQ 128s129s7x")
_TARGET = struct.Struct("=QQiI16s")
_ANSWER = 16 << 10
_CREATE, _REMOVE, _RESUME, _LOAD = 3, 4, 6, 9
_BUSY_SECONDS = 20.0


class Part(NamedTuple):
    """One stretch of a device: bytes, and the target it is mapped by."""

    length: int
    kind: str
    arguments: str


@contextmanager
def mapped(name: str, *parts: Part) -> Iterator[str]:
    """A device of these parts; its path. It is gone when the block ends. Raises OSError."""
    number = _call(_CREATE, name)
    try:
        _call(_LOAD, name, _table(parts), len(parts))
        _call(_RESUME, name)
        yield f"/dev/dm-{number}"
    finally:
        _remove(name)


def linear(name: str, device: str, start: int, length: int) -> AbstractContextManager[str]:
    """A stretch of a device (bytes) as a device."""
    return mapped(name, Part(length, "linear", f"{device} {start // SECTOR}"))


def size_of(device: str) -> int:
    """The bytes of a device."""
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.lseek(descriptor, 0, os.SEEK_END)
    finally:
        os.close(descriptor)


def _remove(name: str) -> None:
    """Remove a device, once udev has let go of it."""
    ends = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            _call(_REMOVE, name)
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > ends:
                raise
            time.sleep(0.02)
        else:
            return


def _table(parts: tuple[Part, ...]) -> bytes:
    """The targets of a device as the kernel takes them, one after the other."""
    table, start = b"", 0
    for part in parts:
        words = part.arguments.encode() + b"\0"
        words += bytes(-len(words) % 8)
        sectors, following = part.length // SECTOR, _TARGET.size + len(words)
        table += _TARGET.pack(start, sectors, 0, following, part.kind.encode()) + words
        start += sectors
    return table


def _call(command: int, name: str, table: bytes = b"", parts: int = 0) -> int:
    """One ioctl about a device; returns the device's minor number."""
    head = _HEAD.pack(
        4, 0, 0, _ANSWER, _HEAD.size, parts, 0, 0, 0, 0, 0, name.encode(), b""
    )  # fmt: skip
    buffer = bytearray((head + table).ljust(_ANSWER, b"\0"))
    request = 3 << 30 | _HEAD.size << 16 | 0xFD << 8 | command
    with Path(_CONTROL).open("rb") as control:
        fcntl.ioctl(control, request, buffer)
    return os.minor(_HEAD.unpack_from(buffer)[10])
