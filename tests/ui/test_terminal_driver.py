"""The driver that reads the console's keys from a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import selectors
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue

import pytest
from textual import events
from textual.message import Message

from zconsole.ui.terminal_driver import TerminalDriver


def test_something_is_said_before_anything_is_loaded_or_drawn_and_both_keys_of_a_packet_act():
    """Esc leaves the help and ``q`` quits the console."""
    with demo() as (terminal, console):
        seen = read_until(terminal, b"DEGRADED")
        loading, drawing = seen.split(b"\x1b[?1049h", 1)
        assert b"zconsole: starting" in loading
        assert loading.endswith(b"\x1b[2K"), "nothing of it is left for the shell"
        assert drawing.index(b"zconsole: reading pools") < drawing.index(b"DEMO")
        os.write(terminal, b"?")
        read_until(terminal, b"HELP")
        os.write(terminal, b"\xff\x1bq")  # \xff is not UTF-8 and no key
        read_until(terminal, None)
        assert console.wait(20) == 0


def test_the_keyboard_is_waited_for_without_looking(monkeypatch: pytest.MonkeyPatch):
    """Otherwise an idle console would wake ten times a second; only Esc needs a timeout."""
    waits: list[float | None] = []

    class Selector(selectors.SelectSelector):
        def select(self, timeout: float | None = None):
            waits.append(timeout)
            return super().select(timeout)

    monkeypatch.setattr(selectors, "SelectSelector", Selector)
    told: SimpleQueue[Message] = SimpleQueue()
    with keyboard(told.put) as (terminal, thread, stop):
        for typed in (b"a", b"\x1b", b"b"):
            os.write(terminal, typed)
            key = told.get(timeout=30)
            assert isinstance(key, events.Key)
        stop()
        thread.join(30)
        assert not thread.is_alive()
    assert waits.count(None) >= 4
    assert waits[0] is waits[1] is waits[-1] is None
    assert 0.1 in waits


def test_keys_typed_while_it_starts_are_not_shown_and_act_later_and_right_enter_presses_a_button():
    with demo("healthy") as (terminal, console):
        assert is_echoing(terminal)
        seen = read_until(terminal, b"zconsole: starting")
        os.write(terminal, b"?~~~")
        seen += read_until(terminal, b"HELP")
        assert b"~~~" not in seen.split(b"\x1b[?1049h")[0]
        os.write(terminal, b"\x1b")
        read_until(terminal, b"quit")
        os.write(terminal, b"S")
        read_until(terminal, b"Start or resume")
        os.write(terminal, b"\r")
        read_until(terminal, b"Cancel")
        os.write(terminal, b"\x1b[C\r")
        read_until(terminal, b"Started")
        os.write(terminal, b"\x1bq")
        read_until(terminal, b"\x1b[?1049l")
        assert console.wait(20) == 0
        assert is_echoing(terminal)


def test_the_main_screen_does_not_flash_between_the_steps_of_a_flow():
    with demo("added-vdev") as (terminal, _):
        read_until(terminal, b"REDUNDANCY")
        os.write(terminal, b"B")
        read_until(terminal, b"New job")
        between = b""
        for seen in (b"DIRECTORY", b"Show the plan", b"Cancel"):
            os.write(terminal, b"\r")
            between += read_until(terminal, seen)
        assert b"REDUNDANCY" not in between


@contextmanager
def keyboard(
    tell: Callable[[Message], object],
) -> Iterator[tuple[int, threading.Thread, Callable[[], None]]]:
    """Run a thread of the driver on a pipe; yields the pipe, the thread and what stops it."""
    reading, typing = os.pipe()
    driver = TerminalDriver.__new__(TerminalDriver)
    driver.fileno, driver._stop = reading, os.pipe()
    stopped, stop = driver._stop
    driver.process_message = tell  # type: ignore[method-assign,assignment]
    thread = threading.Thread(target=driver.run_input_thread, daemon=True)
    thread.start()
    try:
        yield typing, thread, partial(os.close, stop)
    finally:
        for end in (reading, typing, stopped):
            os.close(end)


def is_echoing(terminal: int) -> bool:
    """Return whether the terminal echoes what is typed."""
    return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)


@contextmanager
def demo(*words: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run the demo in a terminal of its own."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    console = subprocess.Popen(
        [sys.executable, "-m", "zconsole", "demo", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield ours, console
    finally:
        console.kill()
        console.wait()
        os.close(ours)


def read_until(terminal: int, wanted: bytes | None) -> bytes:
    """Return the output up to ``wanted``; with ``None``, up to the end."""
    seen, end = b"", time.monotonic() + 60
    while wanted is None or wanted not in seen:
        assert time.monotonic() < end, seen[-2000:]
        try:
            data = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            data = b""
        if not data:
            assert wanted is None, seen[-2000:]
            return seen
        seen += data
    return seen
