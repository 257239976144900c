"""Files as they are kept: plain, packed by gzip, or in the encoding a shell chose."""

from __future__ import annotations

import codecs
import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

GZIP = b"\x1f\x8b"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""What PowerShell makes of any output."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[io.TextIOWrapper]:
    """A file's text, line by line; a pipe is opened once. Raises OSError, and when it is read
    EOFError or zlib.error where what is packed is damaged."""
    with path.open("rb") as file:
        head = file.peek(2)[:2]
        if head in UTF_16:
            yield io.TextIOWrapper(file, encoding="utf-16", errors="replace")
        elif head == GZIP:
            import gzip  # only here: few are packed

            unpacked = gzip.GzipFile(fileobj=file)
            yield io.TextIOWrapper(unpacked, encoding="utf-8-sig", errors="surrogateescape")
        else:
            yield io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape")
