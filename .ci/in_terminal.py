"""Run a command in a terminal, as somebody would who looks at its screen.

`in_terminal.py TEXT KEYS COMMAND…` waits until TEXT is on the screen, types KEYS, and ends with the
command's exit status; with 1 where TEXT does not come or the command does not end.
"""

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

ROWS, COLUMNS = 24, 80
WAIT = 300.0
"""Seconds until the text is there: the command may install something first."""
END = 60.0
"""Seconds from the keys to the end of the command."""


def main(text: str, keys: str, *command: str) -> int:
    """Returns the exit status of the command, or 1."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        for name in ("COLUMNS", "LINES"):  # the terminal's own size counts
            os.environ.pop(name, None)
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    screen = read(terminal, text.encode(), WAIT)
    if text.encode() not in screen:
        return complain(f"{text!r} did not come", pid, screen)
    os.write(terminal, keys.encode())
    ended, screen = time.monotonic() + END, screen + read(terminal, None, END)
    if time.monotonic() >= ended:
        return complain(f"did not end after {keys!r}", pid, screen)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(f"{text!r} was on the screen; after {keys!r} the command ended with {code}")
    return code


def read(terminal: int, until: bytes | None, seconds: float) -> bytes:
    """What the terminal was sent until a text is among it, it was closed, or time is up."""
    screen, ends = b"", time.monotonic() + seconds
    while until is None or until not in screen:
        if not select.select([terminal], [], [], max(0.0, ends - time.monotonic()))[0]:
            break
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # EIO: nobody has the other side open any more
            break
        if not piece:
            break
        screen += piece
    return screen


def complain(what: str, pid: int, screen: bytes) -> int:
    """Tell what was on the screen, and end the command; 1."""
    print(f"{what}; the last of the screen:\n{screen[-2000:]!r}", file=sys.stderr)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
