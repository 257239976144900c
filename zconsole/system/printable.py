"""Printing text from outside safely, and to pipes whose reader has gone."""

from __future__ import annotations

import contextlib
import os
import sys
import unicodedata
from collections.abc import Iterator
from typing import TextIO


def clean(text: str) -> str:
    r"""Make text safe for a terminal: control and bidi characters are escaped as ``\xNN``.

    Surrogates, which stand for bytes that were not UTF-8, become the ``\xNN`` of the byte.
    """
    if text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def inert(text: str) -> str:
    """Make text safe for Markdown, too: none of it becomes HTML, or an image that is fetched."""
    return clean(text).replace("<", "&lt;").replace("![", "!&#91;")


def _visible(char: str) -> str:
    # Categories "C…" are control, format (bidi), surrogate, private and unassigned characters;
    # U+2028 and U+2029 separate lines and paragraphs.
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if unicodedata.category(char)[0] == "C" or code in (0x2028, 0x2029):
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return char


@contextlib.contextmanager
def for_who_reads() -> Iterator[None]:
    """Flush stdout at the end of a ``with`` block; ignore a closed pipe, in the block as well."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        swallow()


def swallow(stream: TextIO | None = None) -> None:
    """Redirect a stream (default: stdout) to /dev/null, so that the flush at exit can't fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), (stream or sys.stdout).fileno())
