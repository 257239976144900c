"""The echo of a terminal, off from the first moment: what is typed ahead is drawn nowhere."""

from __future__ import annotations

import contextlib
import termios

_LOCAL = 3
"""Index of the local modes in what ``tcgetattr`` gives."""


class TerminalEcho:
    """Of one terminal; where there is none, nothing happens."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._before: list[int | list[bytes | int]] | None = None

    def off(self) -> None:
        """Keys typed from now on are kept for who reads them, and not shown."""
        with contextlib.suppress(termios.error):
            before, quiet = termios.tcgetattr(self._fd), termios.tcgetattr(self._fd)
            quiet[_LOCAL] &= ~termios.ECHO
            termios.tcsetattr(self._fd, termios.TCSANOW, quiet)
            self._before = before

    def restore(self) -> None:
        """As it was found; once: then the terminal is somebody else's."""
        before, self._before = self._before, None
        if before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSANOW, before)
