"""Files as users keep them: plain, packed by gzip, or in the encoding of a shell.

They are read in pieces of limited size: of a foreign or malicious file, memory never holds more
than the longest line.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from zconsole.errors import NotFoundError, NotUnderstoodError, UnavailableError, ZconsoleError

STDIN = "-"
GZIP = b"\x1f\x8b"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""PowerShell's encoding of any output."""
LONGEST_LINE = 16 * 2**20
"""Characters of a line. A sample has 3,500 a device: one of 4,000 devices fits, twice what any
pool has."""
FARTHEST = 256 * 2**20
"""Characters in which nothing is understood before the rest is given up: a second or two of
reading. Two gigabytes of zeros are two megabytes of gzip, and a device file has no end."""

BARREN = 2**20
"""Bytes packed by gzip that give nothing before the rest is given up: a header's name and empty
members have no end either, and Python takes a fifth of a second for a megabyte of them."""

DAMAGE = (EOFError, UnicodeError)
"""What reading a damaged file raises."""


def place_of(path: str) -> str:
    """Its name in messages."""
    return "standard input" if path == STDIN else path


@contextlib.contextmanager
def reading(path: str, start: int = 0) -> Iterator[TextIO]:
    """A file's text, or that of standard input (``-``), bytes that are not UTF-8 surrogate-escaped.

    ``start``: the offset to begin at, of a file that is not packed.

    Errors in the block are raised as one line with the file's name: NotFoundError,
    UnavailableError (permission), NotUnderstoodError (damaged), ZconsoleError.
    """
    try:
        with _opened(path, start) as file:
            yield file
    except FileNotFoundError:
        raise NotFoundError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise NotFoundError(f"{path} is a directory, not a file") from None
    except PermissionError:
        raise UnavailableError(f"{path}: permission denied") from None
    except DAMAGE as error:
        raise NotUnderstoodError(f"{place_of(path)}: damaged: {error}") from None
    except OSError as error:
        raise ZconsoleError(f"{path}: {error.strerror}") from None


def lines(file: TextIO) -> Iterator[str | None]:
    """Each line; None for one that is longer than LONGEST_LINE.

    Raises EOFError where such a line has no end within FARTHEST characters.
    """
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) <= LONGEST_LINE:
            yield line.replace("\0", "")  # what a crash leaves at the end of a log
            continue
        passed = len(line)
        while line and not line.endswith("\n"):
            if passed > FARTHEST:
                raise EOFError(f"a line is longer than {FARTHEST >> 20} MiB")
            line = file.readline(2**20)
            passed += len(line)
        yield None


@contextlib.contextmanager
def _opened(path: str, start: int) -> Iterator[TextIO]:
    if path != STDIN:
        with Path(path).open("rb") as file:
            if start:
                file.seek(start)
            yield _text(file)
        return
    file = io.BufferedReader(cast("io.RawIOBase", sys.stdin.buffer))
    try:
        yield _text(file)
    finally:
        with contextlib.suppress(ValueError):
            file.detach()  # whoever opened standard input closes it


def _text(file: BinaryIO) -> TextIO:
    """Its text, with unchanged line ends."""
    head = cast("io.BufferedReader", file).peek(2)[:2]
    if head in UTF_16:
        return io.TextIOWrapper(file, encoding="utf-16", errors="replace", newline="\n")
    if head == GZIP:
        file = cast("BinaryIO", io.BufferedReader(_Unpacked(file)))
    return io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="\n")


class _Packed:
    """The bytes of a packed file; raises EOFError once too many were given for nothing."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.given = 0

    def read(self, size: int) -> bytes:
        """See io.RawIOBase.read."""
        if self.given > BARREN:
            raise EOFError(f"{BARREN >> 20} MiB of gzip data are empty")
        data = self._file.read(size)
        self.given += len(data)
        return data


class _Unpacked(io.RawIOBase):
    """What a file packed by gzip holds, a piece at a time; raises DAMAGE."""

    def __init__(self, file: BinaryIO) -> None:
        import gzip  # only here: few are packed

        self._packed = _Packed(file)
        self._file = gzip.GzipFile(fileobj=cast("BinaryIO", self._packed))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """See io.RawIOBase.readinto."""
        import zlib  # loaded by gzip

        self._packed.given = 0
        try:
            return self._file.readinto1(buffer)  # not more: what comes before damage is whole
        except zlib.error as error:
            raise EOFError(str(error)) from None
        except OSError as error:
            if error.errno is None:  # the module's own: a checksum, or what follows the end
                raise EOFError(str(error)) from None
            raise
