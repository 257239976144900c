"""Reads the terminal with the console's own parser of keys."""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, cast

from textual.drivers.linux_driver import LinuxDriver

from zconsole.ui.key_parser import KeyParser

if TYPE_CHECKING:
    from zconsole.ui.themed_app import ThemedApp

_PATIENCE = 0.1
"""Seconds between two looks whether more will come of what has begun."""
_MOST = 4096
_FIRST = "\x1b[H zconsole: reading pools"
"""In the colors of the terminal; the first paint covers all of it."""


class TerminalDriver(LinuxDriver):
    """Textual's own, with another parser; bytes that are no UTF-8 end nothing."""

    def start_application_mode(self) -> None:
        """Take the terminal, and say at once what comes: a slow machine takes long to draw it."""
        cast("ThemedApp", self._app).view_state.options.take_terminal()
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self.write(_FIRST)
        self.flush()

    def run_input_thread(self) -> None:
        """Read until the console ends."""
        parser = KeyParser()
        decode = getincrementaldecoder("utf-8")("replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                text = ""
                if selector.select(_PATIENCE):
                    if not (data := os.read(self.fileno, _MOST)):
                        return  # hung up, which a signal says, too; reading on would only spin
                    text = decode(data)
                # No text, as of half a character, is not fed: it would mean the end.
                for message in (*(parser.feed(text) if text else ()), *parser.tick()):
                    self.process_message(message)
