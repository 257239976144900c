"""What the bytes of a terminal are read as."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import time

import pytest
from textual import events

from zconsole.ui.terminal_driver import KeyParser


def keys(*packets: str) -> list[str]:
    """The keys of these packets, with time for an Esc alone after each."""
    parser = KeyParser()
    found = []
    for packet in packets:
        found += parser.feed(packet)
        if parser._timeout_time is not None:
            parser._timeout_time = 0.0
        found += parser.tick()
    return [event.key for event in found if isinstance(event, events.Key)]


@pytest.mark.parametrize(
    ("packet", "read"),
    [
        ("\x1b", ["escape"]),
        ("\x1bq", ["escape", "q"]),
        ("\x1bS", ["escape", "S"]),
        ("\x1b\r", ["escape", "enter"]),
        ("\x1b\t", ["escape", "tab"]),
        ("\x1b?", ["escape", "question_mark"]),
        ("\x1b/", ["escape", "slash"]),
        ("\x1b1", ["escape", "1"]),
        ("\x1bf", ["escape", "f"]),
        ("\x1b[", ["escape", "left_square_bracket"]),
        ("\x1b]", ["escape", "right_square_bracket"]),
        ("\x1b]j", ["escape", "right_square_bracket", "j"]),
        ("\x1bO", ["escape", "O"]),
        ("\x1b\x1b", ["escape", "escape"]),
        ("\x1b\x1bq", ["escape", "escape", "q"]),
        ("\x1bjjj\x1bq", ["escape", "j", "j", "j", "escape", "q"]),
        ("\x1bT\x1b[B\r", ["escape", "T", "down", "enter"]),
        ("\x1b\x03", ["escape", "ctrl+c"]),
        ("\x1b[A\x1b[1;5C\x1bOP\x1b[Z", ["up", "ctrl+right", "f1", "shift+tab"]),
        ("\x1b[113;3u", ["alt+q"]),
        ("\x1b[27u", ["escape"]),
    ],
    ids=repr,
)
def test_escape_and_the_key_behind_it_are_two_keys(packet, read):
    assert keys(packet) == read


def test_a_special_key_may_come_in_two_packets():
    parser = KeyParser()
    (found,) = (*parser.feed("\x1b["), *parser.feed("A"))
    assert found.key == "up"


def test_both_act_in_a_real_terminal():
    """Esc leaves the help and ``q`` the console, both in one packet."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    console = subprocess.Popen(
        [sys.executable, "-m", "zconsole", "demo"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        read_until(ours, b"DEGRADED")
        os.write(ours, b"?")
        read_until(ours, b"HELP")
        os.write(ours, b"\xff\x1bq")  # not UTF-8, which is nobody's key
        read_until(ours, None)
        assert console.wait(20) == 0
    finally:
        console.kill()
        console.wait()
        os.close(ours)


def read_until(terminal: int, wanted: bytes | None) -> None:
    """Read what is drawn until it is there; ``None``: until nobody draws any more."""
    seen, end = b"", time.monotonic() + 60
    while wanted is None or wanted not in seen:
        assert time.monotonic() < end, seen[-2000:]
        try:
            data = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            data = b""
        if not data:
            assert wanted is None, seen[-2000:]
            return
        seen += data
