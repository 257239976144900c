"""Open files as users keep them: plain, gzip-compressed, or in the encoding of a shell.

Files are read in pieces of limited size, so that even a foreign or malicious file never takes more
memory than the longest line.
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
"""UTF-16 byte order marks; PowerShell writes any output this way."""
LONGEST_LINE = 16 * 2**20
"""Characters per line. A sample has 3,500 per device: one of 4,000 devices fits, twice what any
pool has."""
FARTHEST = 256 * 2**20
"""Characters read without understanding anything before the rest is given up: a second or two of
reading. Two gigabytes of zeros compress to two megabytes of gzip, and a device file has no end."""

BARREN = 2**20
"""Bytes of gzip data that yield no output before the rest is given up: a header's name and empty
members have no limit either, and Python takes a fifth of a second per megabyte of them."""

DAMAGE = (EOFError, UnicodeError)
"""Exceptions that reading a damaged file can raise."""


def place_of(path: str) -> str:
    """Return the file's name for messages."""
    return "standard input" if path == STDIN else path


@contextlib.contextmanager
def reading(path: str, start: int = 0) -> Iterator[TextIO]:
    """Open a file or stdin (``-``) as text, with bytes that are not UTF-8 surrogate-escaped.

    ``start`` is the offset to begin at, for a file that is not compressed.

    Errors in the block are raised as one line with the file's name: NotFoundError, UnavailableError
    (permission), NotUnderstoodError (damaged), ZconsoleError.
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
    """Yield each line; None for one that is longer than LONGEST_LINE.

    Raises EOFError if such a line does not end within FARTHEST characters.
    """
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) <= LONGEST_LINE:
            yield line.replace("\0", "")  # a crash leaves NULs at the end of a log
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
    """Return the file as text, with unchanged line ends."""
    head = cast("io.BufferedReader", file).peek(2)[:2]
    if head in UTF_16:
        return io.TextIOWrapper(file, encoding="utf-16", errors="replace", newline="\n")
    if head == GZIP:
        file = cast("BinaryIO", io.BufferedReader(_Unpacked(file)))
    return io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="\n")


class _Packed:
    """Compressed bytes of a file; raises EOFError after too many that yield no output."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.given = 0

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, as io.RawIOBase.read does."""
        if self.given > BARREN:
            raise EOFError(f"{BARREN >> 20} MiB of gzip data are empty")
        data = self._file.read(size)
        self.given += len(data)
        return data


class _Unpacked(io.RawIOBase):
    """Decompressed content of a gzip file, read in pieces; raises DAMAGE."""

    def __init__(self, file: BinaryIO) -> None:
        import gzip  # only here: few files are compressed

        self._packed = _Packed(file)
        self._file = gzip.GzipFile(fileobj=cast("BinaryIO", self._packed))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer`` with decompressed bytes, as io.RawIOBase.readinto does."""
        import zlib  # loaded by gzip

        self._packed.given = 0
        try:
            return self._file.readinto1(buffer)  # not more: what precedes the damage is intact
        except zlib.error as error:
            raise EOFError(str(error)) from None
        except OSError as error:
            if error.errno is None:  # gzip's own error: a bad checksum, or garbage after the end
                raise EOFError(str(error)) from None
            raise
