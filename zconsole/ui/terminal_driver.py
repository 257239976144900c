"""Terminal driver with the console's own key parser."""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from textual.drivers.linux_driver import LinuxDriver

from zconsole.ui.key_parser import KeyParser

if TYPE_CHECKING:
    from zconsole.ui.themed_app import ThemedApp

_PATIENCE = 0.1
"""Seconds between two checks for more of an incomplete sequence."""
_MOST = 4096
_FIRST = "\x1b[H zconsole: reading pools"
"""In the terminal's own colors; the first paint covers it."""


class TerminalDriver(LinuxDriver):
    """Textual's Linux driver with another parser; invalid UTF-8 does not end the input.

    Textual polls ten times a second for the end. This driver sleeps until there is input, or the
    other end of a pipe is closed.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._stop: tuple[int, int] | None = None
        """Pipe whose write end is closed to wake the reading thread."""

    def start_application_mode(self) -> None:
        """Take the terminal, and show a line at once: drawing the screen may take long."""
        cast("ThemedApp", self._app).view_state.options.take_terminal()
        self._stop = os.pipe()
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self.write(_FIRST)
        self.flush()

    def disable_input(self) -> None:
        """Wake the reading thread, and wait for its end."""
        stop, self._stop = self._stop, None
        if stop is not None:
            os.close(stop[1])
        super().disable_input()
        if stop is not None:
            os.close(stop[0])

    def run_input_thread(self) -> None:
        """Read until the console ends."""
        if (stop := self._stop) is None:
            return
        parser = KeyParser()
        decode = getincrementaldecoder("utf-8")("replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(stop[0], selectors.EVENT_READ)
            while True:
                text = ""
                ready = {key.fd for key, _ in selector.select(_PATIENCE if parser.due else None)}
                if stop[0] in ready:
                    return
                if self.fileno in ready:
                    if not (data := os.read(self.fileno, _MOST)):
                        return  # hangup: SIGHUP ends the console; reading on would only spin
                    text = decode(data)
                for message in parser.feed(text, monotonic()):
                    self.process_message(message)
