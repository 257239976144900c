"""Device-mapper devices, made through ioctls (linux/dm-ioctl.h), without dmsetup."""

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
    """One part of a device: its length in bytes, and the target it is mapped by."""

    length: int
    kind: str
    arguments: str


@contextmanager
def mapped(name: str, *parts: Part) -> Iterator[str]:
    """Create a device of these parts until the block ends; yields its path. Raises OSError."""
    number = _call(_CREATE, name)
    try:
        _call(_LOAD, name, _table(parts), len(parts))
        _call(_RESUME, name)
        yield f"/dev/dm-{number}"
    finally:
        _remove(name)


def linear(name: str, device: str, start: int, length: int) -> AbstractContextManager[str]:
    """Map a part of a device (in bytes) as a device."""
    return mapped(name, Part(length, "linear", f"{device} {start // SECTOR}"))


def size_of(device: str) -> int:
    """Return the size of a device in bytes."""
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.lseek(descriptor, 0, os.SEEK_END)
    finally:
        os.close(descriptor)


def _remove(name: str) -> None:
    """Remove a device, once udev no longer has it open."""
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
    """Return the targets of a device in the kernel's format, one after another."""
    table, start = b"", 0
    for part in parts:
        words = part.arguments.encode() + b"\0"
        words += bytes(-len(words) % 8)
        sectors, following = part.length // SECTOR, _TARGET.size + len(words)
        table += _TARGET.pack(start, sectors, 0, following, part.kind.encode()) + words
        start += sectors
    return table


def _call(command: int, name: str, table: bytes = b"", parts: int = 0) -> int:
    """Call one ioctl about a device; returns the device's minor number."""
    head = _HEAD.pack(
        4, 0, 0, _ANSWER, _HEAD.size, parts, 0, 0, 0, 0, 0, name.encode(), b""
    )  # fmt: skip
    buffer = bytearray((head + table).ljust(_ANSWER, b"\0"))
    request = 3 << 30 | _HEAD.size << 16 | 0xFD << 8 | command
    with Path(_CONTROL).open("rb") as control:
        fcntl.ioctl(control, request, buffer)
    return os.minor(_HEAD.unpack_from(buffer)[10])
