"""Reads the terminal: Esc with a key right behind it is Esc and that key, never Alt with the key.

Over a slow link both come in one packet, which is just what a terminal sends for Alt with the key.
Alt means nothing to the console; an Esc that is lost leaves a screen open that nobody wants.
"""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder
from collections.abc import Iterable

from textual import events
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

_ESC = "\x1b"
_INTRODUCERS = ("[", "O")
"""What follows an Esc that begins the sequence of a special key, or of the mouse."""
_PATIENCE = 0.1
"""Seconds after which an Esc with nothing behind it is looked at again."""
_MOST = 4096


class KeyParser(XTermParser):
    """Makes two keys of an Esc and a character that together are no special key."""

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        """See XTermParser; ``alt`` says that an Esc came before a character."""
        pair = len(sequence) == 2 and sequence[0] == _ESC and sequence[1] not in _INTRODUCERS
        if alt or pair:
            yield events.Key("escape", _ESC)
            sequence = sequence[-1]
        yield from super()._sequence_to_key_events(sequence)


class TerminalDriver(LinuxDriver):
    """Textual's own, with another parser; bytes that are no UTF-8 end nothing."""

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
