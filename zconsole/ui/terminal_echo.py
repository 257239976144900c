"""The echo of a terminal, off while the console starts: what is typed ahead is not drawn."""

from __future__ import annotations

import contextlib
import termios

_LOCAL = 3
"""Index of the local modes in what ``tcgetattr`` gives."""


class TerminalEcho:
    """Switches the echo of one terminal off and back; does nothing where there is none."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._before: list[int | list[bytes | int]] | None = None

    def off(self) -> None:
        """Stop showing what is typed; it can still be read."""
        with contextlib.suppress(termios.error):
            before, quiet = termios.tcgetattr(self._fd), termios.tcgetattr(self._fd)
            quiet[_LOCAL] &= ~termios.ECHO
            termios.tcsetattr(self._fd, termios.TCSANOW, quiet)
            self._before = before

    def restore(self) -> None:
        """Put the terminal back as it was found. Once: after that it may be in use by others."""
        before, self._before = self._before, None
        if before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSANOW, before)
