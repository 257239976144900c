"""Printing: text from outside made safe, as it may contain anything; readers that go away."""

from __future__ import annotations

import contextlib
import os
import sys
import unicodedata
from collections.abc import Iterator
from typing import TextIO


def clean(text: str) -> str:
    r"""Outside text made safe for a terminal: control and bidi characters as ``\xNN``, escaped.

    Surrogates (bytes that were not UTF-8) come out as the byte's ``\xNN``.
    """
    if text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def inert(text: str) -> str:
    """Clean text for Markdown, none of which becomes HTML or an image that is fetched."""
    return clean(text).replace("<", "&lt;").replace("![", "!&#91;")


def _visible(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if unicodedata.category(char)[0] == "C" or code in (0x2028, 0x2029):
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return char


@contextlib.contextmanager
def for_who_reads() -> Iterator[None]:
    """Flush all output at the end; a closed pipe is not a failure."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        swallow()


def swallow(stream: TextIO | None = None) -> None:
    """Redirect a stream (default: stdout) to nowhere, so that the last flush at exit can't fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), (stream or sys.stdout).fileno())
