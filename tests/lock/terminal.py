"""zconsole on a pseudo-terminal, as a user at the keyboard sees it."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pyte
from pyte.screens import Char
from wcwidth import wcwidth

from tests.lock.frozen import Asked, tasks

TREE = Path(__file__).parents[2]
KEYS = {
    "Enter": "\r",
    "Esc": "\x1b",
    "Tab": "\t",
    "Shift-Tab": "\x1b[Z",
    "Space": " ",
    "Backspace": "\x7f",
    "Up": "\x1b[A",
    "Down": "\x1b[B",
    "Right": "\x1b[C",
    "Left": "\x1b[D",
    "Home": "\x1b[H",
    "End": "\x1b[F",
    "PgUp": "\x1b[5~",
    "PgDn": "\x1b[6~",
    "F1": "\x1bOP",
    **{f"^{letter}": chr(ord(letter) - 64) for letter in "BCFPUY"},
}
"""What a terminal sends for named keys."""
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "USER": "operator",
    "LOGNAME": "operator",
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
    "LANG": "C.UTF-8",
    "TZ": "UTC0",
    "PYTHONPATH": str(TREE),
    "PYTHONHASHSEED": "0",
}
"""Environment variables that all runs share."""
_PATIENCE = 300.0
"""Real seconds for the program to come to rest, even on a busy machine."""
_ENDING = 5.0
"""Real seconds for the program to exit after it has left its screen."""
_GLANCE = 0.001
"""Real seconds between two looks at a running program."""
_AFTER = 0.2
"""Seconds of the program's time that pass after a key."""
_STYLE = re.compile(r"\x1b\[([0-9;]*)m")
_ENTERS, _LEAVES = "\x1b[?1049h", "\x1b[?1049l"
_CLIPBOARD = re.compile(rb"\x1b\]52;[^;]*;([^\x07\x1b]*)(?:\x07|\x1b\\)")
_NOT_DRAWN = re.compile(rb"\x1b\[[<=>][0-9;]*[A-Za-z]|\x1b\[\?[0-9;]*\$p|\x1bP.*?\x1b\\", re.DOTALL)
"""Queries to the terminal, and keyboard modes: pyte would draw the ends of these sequences."""


@cache
def _cell(char: str, style: Char) -> Char | None:
    """Return a cell with a character; None if it is not one cell wide."""
    return style._replace(data=char) if wcwidth(char) == 1 else None


@cache
def _styled(before: Char, numbers: str) -> Char:
    """Return a style changed by SGR parameters; faint text is marked as blinking."""
    screen = pyte.Screen(1, 1)
    screen.cursor.attrs = before
    codes = iter([int(number or 0) for number in numbers.split(";")])
    for code in codes:
        if code in (38, 48):
            kind = next(codes)
            color = [next(codes) for _ in range(3 if kind == 2 else 1)]
            screen.select_graphic_rendition(code, kind, *color)
        else:  # pyte has no faint text, and nothing blinks
            screen.select_graphic_rendition(*{2: (5,), 22: (22, 25)}.get(code, (code,)))
    return screen.cursor.attrs


class Screen(pyte.Screen):
    """A terminal that caches styles and cells, which pyte creates anew each time."""

    def __init__(self, columns: int, lines: int) -> None:
        super().__init__(columns, lines)
        self._stream = pyte.Stream(self)

    def write(self, text: str) -> None:
        """Show output of the program; sequences in it are complete."""
        for number, part in enumerate(_STYLE.split(text)):
            if number % 2:
                self.cursor.attrs = _styled(self.cursor.attrs, part)
            elif part:
                self._stream.feed(part)

    def draw(self, data: str) -> None:
        """Draw text."""
        cursor, line = self.cursor, self.buffer[self.cursor.y]
        cells = [_cell(char, cursor.attrs) for char in data]
        if None in cells or cursor.x + len(cells) > self.columns:
            super().draw(data)
            return
        line.update(enumerate(cells, cursor.x))
        cursor.x += len(cells)


def typed(*keys: str) -> bytes:
    """Return what a terminal sends for keys."""
    return "".join(KEYS.get(key, key) for key in keys).encode()


class Program:
    """A run of zconsole, forked from a process that has imported it."""

    def __init__(self, asked: Asked, files: Sequence[int], env: Mapping[str, str]) -> None:
        """Start a run; ``files`` are its terminal, and the socket that advances its clock."""
        self._parent = _parent(tuple(sorted(env.items())))
        socket.send_fds(self._parent, [json.dumps(asked).encode()], files)
        self.pid = int(self._parent.recv(64))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code if the run has ended, else None."""
        if self.returncode is None and select.select([self._parent], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self) -> None:
        """Wait for the run to end."""
        if self.returncode is None:
            self.returncode = int(self._parent.recv(64))

    def kill(self) -> None:
        """Kill the run."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


@cache
def _parent(env: tuple[tuple[str, str], ...]) -> socket.socket:
    """Start the process from which runs in this environment are forked; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen(
            [sys.executable, "-m", "tests.lock.frozen", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=TREE,
            env=ENVIRONMENT | dict(env),
            pass_fds=(theirs.fileno(),),
        )
    return ours


class Terminal:
    """A terminal in which zconsole runs, with a clock of its own."""

    def __init__(
        self,
        words: Sequence[str],
        size: tuple[int, int],
        env: Mapping[str, str],
        files: Sequence[Path],
        early: bytes,
    ) -> None:
        """Start zconsole; ``files`` are copied to its home, ``early`` is typed before it loads."""
        self.home = Path(tempfile.mkdtemp(prefix="lock-", dir="/tmp"))
        # As long as the random name, so that lines wrap the same way in every run.
        self._alias = "lock-".ljust(len(self.home.name), "x")
        for file in files:
            shutil.copy(file, self.home)
        self.screen = Screen(*size)
        self._copied: list[bytes] = []
        self._files = set(self.home.iterdir())
        self._now = 0.0
        self._has_left = False
        self._master, self._slave = os.openpty()
        os.set_blocking(self._master, False)
        self._set_size(size)
        os.write(self._master, early)
        ours, theirs = socket.socketpair()
        self._control = ours.makefile("rw")
        ours.close()
        asked = Asked(list(words), str(self.home), self._places())
        self.process = Program(asked, (self._slave, theirs.fileno()), env)
        theirs.close()

    def start(self) -> None:
        """Let the program start."""
        self._settle()
        self.pass_time(_AFTER)

    def _places(self) -> dict[str, str]:
        home = str(self.home)
        return {
            "HOME": home,
            "XDG_CONFIG_HOME": f"{home}/config",
            "XDG_STATE_HOME": f"{home}/state",
            "ZCONSOLE_STATE": f"{home}/zconsole",
        }

    def _set_size(self, size: tuple[int, int]) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("4H", size[1], size[0], 0, 0))

    def resize(self, size: tuple[int, int]) -> None:
        """Resize the terminal."""
        self.screen.resize(size[1], size[0])
        self._set_size(size)
        self._settle()
        self.pass_time(_AFTER)

    def send(self, data: bytes) -> None:
        """Type bytes in one packet."""
        os.write(self._master, data)
        poll = select.poll()
        poll.register(self._slave, select.POLLIN)
        poll.poll(0)  # makes the kernel pass them on now (n_tty_poll), not at some later time
        self._settle()
        self.pass_time(_AFTER)
        self._see_end()

    def _see_end(self) -> None:
        """Wait for a program that has left its screen to exit; its end is not reported at once."""
        end = time.monotonic() + _ENDING
        while self._has_left and self.process.poll() is None and time.monotonic() < end:
            time.sleep(_GLANCE)
        self._show(self._read())

    def pass_time(self, seconds: float, main_only: bool = False) -> None:
        """Advance the program's time, from one moment that a thread waits for to the next.

        With ``main_only``, only the main thread's deadlines are stops; other threads are woken
        late.
        """
        until = self._now + seconds
        while self._now < until and self.process.poll() is None:
            self._control.write(f"{until!r} {'main' if main_only else 'all'}\n")
            self._control.flush()
            self._now = float(self._control.readline() or until)
            self._settle()

    def take_copied(self) -> list[str]:
        """Return what the program copied to the clipboard since the last call."""
        taken = [base64.b64decode(text).decode() for text in self._copied]
        self._copied.clear()
        return [text.replace(self.home.name, self._alias) for text in taken]

    def take_files(self) -> Iterator[str]:
        """Yield the names of new files in the program's home, with their lines if they are text."""
        new = {path for path in self.home.iterdir() if path.is_file()} - self._files
        self._files |= new
        for path in sorted(new):
            yield path.name
            if path.suffix == ".md":
                text = path.read_text().replace(self.home.name, self._alias)
                yield from (f"  {line}".rstrip() for line in text.splitlines())

    def close(self) -> None:
        """End the program, whatever state it is in."""
        self.process.kill()
        self.process.wait()
        self._control.close()
        os.close(self._master)
        os.close(self._slave)
        shutil.rmtree(self.home)

    def _settle(self) -> None:
        """Wait until every thread of the program waits, and show its output."""
        end = time.monotonic() + _PATIENCE
        before: tuple[str, ...] = ()
        data = b""
        while time.monotonic() < end:
            after = tasks(self.process.pid)
            came = self._read()
            data += came
            if self.process.poll() is not None:
                data += self._read()
                break
            # Two equal looks without output in between: nothing has run (`frozen.tasks`).
            if after and not came and before == after:
                break
            before = after
            if not after:
                time.sleep(_GLANCE)
        else:
            raise TimeoutError(f"the program does not come to rest: {self._threads()}")
        self._show(data)

    def _threads(self) -> str:
        """Return what each thread of the program does, to debug one that does not come to rest."""
        found = []
        for task in sorted(Path(f"/proc/{self.process.pid}/task").iterdir()):
            name, _, rest = (task / "stat").read_text().rpartition(")")
            found.append(f"{name}) {rest.split()[0]} in {(task / 'wchan').read_text()}")
        return "; ".join(found)

    def _read(self) -> bytes:
        """Return what the program has written."""
        poll, data = select.poll(), b""
        poll.register(self._master, select.POLLIN)
        while poll.poll(0):  # makes the kernel pass it on, as in send
            data += os.read(self._master, 65536)
        return data

    def _show(self, data: bytes) -> None:
        """Show output; after the program has left its screen, keep only what it prints then."""
        self._copied += _CLIPBOARD.findall(data)
        text = _NOT_DRAWN.sub(b"", data).decode(errors="replace")
        *parts, last = text.replace(self.home.name, self._alias).split(_LEAVES)
        self._has_left = bool(parts) or (self._has_left and _ENTERS not in last)
        for part in parts:
            self.screen.write(part)
            self.screen.reset()
        self.screen.write(last)
