"""The protocol of the console and its helper, over two pipes.

A request is the name of a pool in a record of fixed length: threads that read from the same pipe
never get half of one. An empty name has the rest of earlier requests answered although one of them
does not come back from the kernel. An answer is a dictionary, marshalled, which takes a fifth of
JSON's time and is safe between two processes of the same Python, behind its length.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Sequence
from typing import Any

RECORD = 256
"""Bytes of a request: a pool's name is shorter (``ZFS_MAX_DATASET_NAME_LEN``)."""
AT_ONCE = 16
"""Requests in one piece, of which a pipe takes all or nothing (PIPE_BUF)."""

_HEAD = 4
_PLAIN = 2
"""The version of marshal that writes all out: to look for what came before takes longer."""
_LONGEST = 1 << 28
"""Longest answer in bytes: a leaf takes two or three thousand."""


def requests(pools: Sequence[str]) -> Iterator[bytes]:
    """The records that ask for pools, in pieces for one write each."""
    names = [pool.encode("utf-8", "surrogateescape")[:RECORD] for pool in pools]
    for start in range(0, len(names), AT_ONCE):
        yield b"".join(name.ljust(RECORD, b"\0") for name in names[start : start + AT_ONCE])


def requested(records: bytes) -> Iterator[str]:
    """The pools that records ask for."""
    for start in range(0, len(records), RECORD):
        name = records[start : start + RECORD].rstrip(b"\0")
        if name:
            yield name.decode("utf-8", "surrogateescape")


def encoded(answer: dict[str, Any]) -> bytes:
    """An answer as it goes over the pipe; of text, bytes, numbers, lists and dictionaries."""
    body = marshal.dumps(answer, _PLAIN)
    return len(body).to_bytes(_HEAD, "little") + body


class Answers:
    """Assembles answers from the bytes of the pipe."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def take(self, data: bytes | memoryview) -> Iterator[dict[str, Any]]:
        """The answers that ``data`` completes. Raises ValueError for anything else."""
        self._rest += data
        while len(self._rest) >= _HEAD:
            end = _HEAD + int.from_bytes(self._rest[:_HEAD], "little")
            if end > _LONGEST:
                raise ValueError("no answer: longer than any")
            if end > len(self._rest):
                return
            body = bytes(self._rest[_HEAD:end])
            del self._rest[:end]
            yield _opened(body)


def _opened(body: bytes) -> dict[str, Any]:
    try:
        answer = marshal.loads(body)  # noqa: S302 - written by our own helper, into our pipe
    except (EOFError, TypeError, ValueError) as error:
        raise ValueError(f"no answer: {error}") from error
    if not isinstance(answer, dict):
        raise ValueError(f"no answer: {answer!r}")
    return answer
