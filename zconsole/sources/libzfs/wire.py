"""What the console and its helper say to each other: a message is one line of text.

A request is the name of a pool. An answer is a dictionary, marshalled, which takes a fifth of
JSON's time and is safe between two processes of the same Python; base64 makes it a line.
"""

from __future__ import annotations

import marshal
from binascii import a2b_base64, b2a_base64
from typing import Any


def packed(answer: dict[str, Any]) -> str:
    """The line of an answer, without its newline; of text, numbers, lists and dictionaries."""
    return b2a_base64(marshal.dumps(answer), newline=False).decode("ascii")


def unpacked(line: str) -> dict[str, Any]:
    """The answer in a line. Raises ValueError when there is none in it."""
    try:
        answer = marshal.loads(a2b_base64(line, strict_mode=True))
    except (EOFError, TypeError, ValueError) as error:
        raise ValueError(f"no answer: {error}") from error
    if not isinstance(answer, dict):
        raise ValueError(f"no answer: {answer!r}")
    return answer
