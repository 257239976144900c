"""However large or repetitive a file is, a command ends within seconds and 600 MB."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.unit.cli.commandline import STATUS
from tests.unit.cli.test_bad_input import LIST, READERS, ROW, check, indented

pytestmark = pytest.mark.slow

MEBIBYTE = 2**20
MOST = 600
"""Limit in MiB."""
PEAK = (
    "import resource, subprocess, sys\n"
    "command = [sys.executable, '-m', 'zconsole', *sys.argv[1:]]\n"
    "done = subprocess.run(command, capture_output=True)\n"
    "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
    "print(done.returncode, peak // 1024, done.stderr.count(b'\\n'), b'Traceback' in done.stderr)\n"
)
"""Python that runs the program; a process forked from these tests would count their memory as well.
"""


def packed(piece: bytes, times: int) -> bytes:
    """Return a gzip file of many copies of the piece, one member for each."""
    return gzip.compress(piece, 1) * times


@cache
def more_than_fits(piece: bytes) -> bytes:
    return packed(piece * (64 * MEBIBYTE // len(piece)), MOST // 64 + 2)


def one_line() -> bytes:
    return more_than_fits(b"x")


def empty_lines() -> bytes:
    return more_than_fits(b"\n")


def objects() -> bytes:
    return more_than_fits(b"{}\n")


def values() -> bytes:
    """Return as many values as are allowed, and one more line with too many."""
    line = b'{"t": 1, "text": "x", "more": ['
    return (line + b"[0]," * 500_000 + b"0]}\n") * 3 + line + b"[0]," * 3_000_000 + b"0]}\n"


def wide_characters() -> bytes:
    return b"  pool: tank\n state: ONLINE\n" + "\U0001f600".encode() + b"y" * (17 * MEBIBYTE)


def rows() -> bytes:
    return (indented(1) + "\t  sda ONLINE 0 0 0\n" * 200_000).encode()


def listing() -> bytes:
    return (LIST + ROW * 400_000).encode()


REPLAY, STATUS_OF, BALANCE = READERS[0], READERS[2], READERS[4]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (one_line, REPLAY),
        (one_line, STATUS_OF),
        (empty_lines, STATUS_OF),
        (objects, REPLAY),
        (values, REPLAY),
        (wide_characters, STATUS_OF),
        (rows, STATUS_OF),
        (listing, BALANCE),
    ],
)
def test_memory(made: Callable[[], bytes], words: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(made())
    command = [sys.executable, "-c", PEAK, *words, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    code, peak, lines, traceback = done.stdout.split()
    assert (code, lines, traceback) == ("5", "1", "False")
    assert int(peak) < MOST


CONTENTS: dict[str, Callable[[], str]] = {
    "lines below": lambda: STATUS + "\n" * 60_000,
    "blanks in a name": lambda: STATUS.replace("tank", "a" + " " * 60_000 + "b", 1),
    "lines above": lambda: "\n" * 60_000 + STATUS,
    "lines below JSON": lambda: "{}\n" + "\n" * 60_000,
    "numbers before a list": lambda: "1 " * 500 + LIST + "1" * 2000 + "\n",
    "numbers before a status": lambda: (
        "1 " * 500 + "NAME STATE READ WRITE CKSUM\n" + "1" * 2000 + "\n"
    ),
    "a long margin": lambda: "x" * 2_000_000 + LIST,
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_no_text_takes_more_time_than_its_length(
    tmp_path: Path, content: Callable[[], str]
) -> None:
    path = tmp_path / "f"
    recording = json.dumps({"t": 1, "text": content()}) + "\n"
    for written, readers in ((content(), (STATUS_OF, BALANCE)), (recording, (REPLAY, STATUS_OF))):
        path.write_text(written)
        for words in readers:
            began = time.process_time()
            check(words, path)
            assert time.process_time() - began < 5.0


NOTHING: dict[str, Callable[[], bytes]] = {
    "a name without end": lambda: b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * 20_000_000,
    "empty members": lambda: gzip.compress(b"") * 1_000_000,
}


@pytest.mark.parametrize("packed", NOTHING.values(), ids=NOTHING)
def test_gzip_that_holds_nothing_is_given_up(tmp_path: Path, packed: Callable[[], bytes]) -> None:
    path = tmp_path / "f"
    path.write_bytes(packed())
    for words in (REPLAY, STATUS_OF):
        began = time.process_time()
        assert check(words, path) == 5
        assert time.process_time() - began < 2.0
