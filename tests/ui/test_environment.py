"""The console in a real pseudo-terminal: how it exits, and what it sends."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from contextlib import contextmanager

from tests.bench.terminal_bytes import BUDGET, Written, read, unsized, while_nothing_changes
from zconsole.errors import ExitCode

DEMO = [sys.executable, "-m", "zconsole", "demo"]
PATIENCE = 60.0
"""Seconds after which something counts as hanging, however busy the machine is."""
RESTORED = b"\x1b[?1049l"


class Terminal:
    """One end of a pseudo-terminal with the demo at the other end."""

    def __init__(self, pid, master):
        self.pid, self.master, self.seen, self.code = pid, master, b"", None

    def size(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys):
        os.write(self.master, keys)

    def read_until(self, wanted, patience=PATIENCE):
        end = time.monotonic() + patience
        while wanted not in self.seen:
            left = end - time.monotonic()
            assert left > 0, self.seen[-300:]
            if select.select([self.master], [], [], left)[0]:
                self.seen += os.read(self.master, 65536)

    def read_for(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._drain()

    def settle(self):
        """Read until nothing has come for a second: a busy machine draws late."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.seen = b""
            self.read_for(1.0)
            if not self.seen:
                return
        raise AssertionError("more and more is written")

    def refreshes(self, wanted):
        """Return the bursts written until ``wanted`` refreshes came, or until time is up."""
        began, bursts = time.monotonic(), []
        while len(bursts) < wanted and time.monotonic() - began < PATIENCE:
            bursts += read(self.master, 2.0)
        return Written(time.monotonic() - began, tuple(bursts))

    def leaves_in_order(self):
        """Return whether it exits as interrupted, and restores the terminal for the shell."""
        return self.wait() == ExitCode.INTERRUPTED and RESTORED in self.seen

    def wait(self, patience=PATIENCE):
        """Return the exit code, reading output meanwhile; fails on timeout."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.code = os.waitstatus_to_exitcode(status)
                return self.code
            self._drain()
        raise AssertionError("still running")

    def _drain(self):
        if select.select([self.master] if self.master >= 0 else [], [], [], 0.05)[0]:
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:
                self.hang_up()

    def hang_up(self):
        os.close(self.master)
        self.master = -1


@contextmanager
def demo(columns=80, lines=24, **environ):
    pid, master = pty.fork()
    if pid == 0:
        settings = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        os.execve(sys.executable, DEMO, unsized(os.environ) | settings | environ)
    terminal = Terminal(pid, master)
    terminal.size(columns, lines)
    try:
        terminal.read_until(b"ETA")
        yield terminal
    finally:
        if terminal.code is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        if terminal.master >= 0:
            terminal.hang_up()


def test_q_leaves_with_0_without_words_of_the_keys_behind_it_and_without_color_if_none_is_wanted():
    with demo(NO_COLOR="1") as terminal:
        terminal.press(b"q\rSB")
        assert terminal.wait() == ExitCode.OK
        assert RESTORED in terminal.seen
        terminal.read_for(0.2)
        assert terminal.seen.rpartition(RESTORED)[2].count(b"\n") == 0
        assert b"38;2;" not in terminal.seen
        assert b"48;2;" not in terminal.seen


def test_control_c_leaves_in_order_although_nobody_has_read_for_seconds():
    with demo(200, 50) as terminal:
        time.sleep(4)
        terminal.press(b"\x03")
        assert terminal.leaves_in_order()


def test_an_interrupt_from_outside_leaves_in_order():
    with demo() as terminal:
        os.kill(terminal.pid, signal.SIGINT)
        assert terminal.leaves_in_order()


def test_a_terminal_that_is_gone_ends_the_process():
    with demo() as terminal:
        terminal.hang_up()
        assert terminal.wait() != ExitCode.OK


def test_a_new_size_is_drawn_the_whole_screen_again_after_a_stop_and_sighup_leaves_in_order():
    with demo() as terminal:
        terminal.seen = b""
        terminal.size(120, 40)
        terminal.read_until(b"\x1b[40;1H")
        terminal.read_for(3.0)
        terminal.press(b"\x1a")
        _, status = os.waitpid(terminal.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        terminal.read_until(RESTORED)
        terminal.seen = b""
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.read_until(b"quit")
        for y in range(1, 41):
            assert b"\x1b[%d;1H" % y in terminal.seen
        os.kill(terminal.pid, signal.SIGHUP)
        assert terminal.leaves_in_order()


def test_a_refresh_has_few_bytes_one_under_help_has_none_and_sigterm_leaves_in_order():
    with demo() as terminal:
        written = terminal.refreshes(4)
        assert len(written.bursts) >= 4
        assert written.typical <= BUDGET
        assert len(written.bursts) <= 2 * written.seconds + 2
        terminal.press(b"?")
        terminal.read_until(b"a page up")
        terminal.settle()
        terminal.read_for(2.5)
        assert terminal.seen == b""
        terminal.press(b"\x1b")
        terminal.read_until(b"ETA")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.leaves_in_order()


def test_nothing_is_written_while_nothing_changes():
    assert while_nothing_changes(2.0) == 0
