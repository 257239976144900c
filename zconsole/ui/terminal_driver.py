"""Terminal driver with the console's own parser of keys, mouse, pastes and the terminal's replies.

Esc followed at once by a key is parsed as the two keys, never as Alt with the key: over a slow link
both may come in one packet, which looks just like Alt with the key. The console has no Alt keys,
while a lost Esc would leave a screen open.

A paste is one event, whatever it contains. A late reply of the terminal (DCS, OSC, APC, or an
unknown CSI) is dropped whole, so that its letters don't act as keys. ``FIXED`` in the tests has
what textual itself makes of each.
"""

from __future__ import annotations

import os
import re
import selectors
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._parser import Parser
from textual._xterm_parser import FOCUSIN, FOCUSOUT, XTermParser
from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

if TYPE_CHECKING:
    from zconsole.ui.themed_app import ThemedApp

_LONGEST = 64
"""Characters of the longest sequence that can mean something."""
_DIGITS = re.compile(r"\d{8}")
"""A number beyond any code point or coordinate that a terminal sends."""
_CSI = r"\x1b\[(?:[0-?]+[ -/]*[@-~]|M[^\x1b]{3})"
"""A sequence with parameters, or a mouse event of an old terminal."""
_CSI_BEGUN = r"\x1b\[(?:[0-?]+[ -/]*|M[^\x1b]{0,2}|\[)"
_REPLY = r"\x1b(?:\]\d+;|P[\d;]*[>!$+|]|_G)[^\0-\x1f\x7f-\x9f]*"
"""An OSC, DCS or APC up to its end: ST or BEL. A control character, being a key, ends it, too."""
_SHORT = (k for k in ANSI_SEQUENCES_KEYS if k[:2] in ("\x1b[", "\x1bO") and not re.match(_CSI, k))
_SEQUENCE = "|".join((_CSI, *map(re.escape, (FOCUSIN, FOCUSOUT, *_SHORT))))
_ENDED = re.compile(
    r"\x1b\[200~(?P<paste>.*?)\x1b\[201~"
    rf"|{_REPLY}(?:\x07|\x1b\\|(?=[\0-\x1a\x1c-\x1f\x7f-\x9f]|\x1b.))"
    rf"|(?P<sequence>(?!\x1b\[200~)(?:{_SEQUENCE})|[^\x1b])"
    rf"|{_CSI_BEGUN}(?=\x1b)",  # cut off
    re.DOTALL,
)
"""Complete input: a paste, a reply, a sequence or a character. What has no group is dropped."""
_BEGUN = (
    (re.compile(r"\x1b\[200~(?P<paste>.*)", re.DOTALL), 5.0),  # a slow link may pause
    (re.compile(rf"(?:{_REPLY}\x1b?|{_CSI_BEGUN})", re.DOTALL), 1.0),
    (re.compile(r"(?P<escape>\x1b(?:[\[O_]|\]\d*|P[\d;]*)?)"), ESCAPE_DELAY),
)
"""Incomplete input, and the seconds of silence after which it counts as complete."""
_KEPT = 65536
"""Characters kept of incomplete input such as a paste; the rest is dropped."""
_TAIL = 8
"""Characters kept at its end, where the mark of its end may begin."""


class KeyParser:
    """Splits input into keys, sequences, replies and pastes; textual parses the sequences."""

    def __init__(self) -> None:
        self._sequences = XTermParser()
        self._text = ""
        """Incomplete input."""
        self.due: float | None = None
        """Time at which silence completes it (seconds of one clock); None without incomplete
        input."""

    def feed(self, text: str, now: float) -> list[Message]:
        """Return the messages of complete input; call with no text to complete it after silence."""
        is_over = not text and self.due is not None and now >= self.due
        if not text and not is_over:
            return []
        self._text += text
        self.due = None
        found: list[Message] = []
        while self._text:
            match = _ENDED.match(self._text)
            if match is None:
                begun = ((each.fullmatch(self._text), wait) for each, wait in _BEGUN)
                match, wait = next(((each, wait) for each, wait in begun if each), (None, 0.0))
                if match is not None and not is_over:
                    self.due = now + wait
                    break
            if match is None or match.lastgroup == "escape":
                found.append(events.Key("escape", "\x1b"))
                self._text = self._text[1:]
            else:
                self._text = self._text[match.end() :]
                self._tell(match, found.append)
            is_over = False
        self._text = self._text[:_KEPT] + self._text[_KEPT:][-_TAIL:]
        return found

    def _tell(self, match: re.Match[str], tell: Callable[[Message], object]) -> None:
        """Send the message of complete input, if it has one."""
        text = match[match.lastgroup or 0]
        if match.lastgroup == "paste":
            kept = (c for c in text[:_KEPT] if c.isprintable() or c in "\n\t")
            tell(events.Paste("".join(kept)))
        if match.lastgroup != "sequence" or len(text) > _LONGEST or _DIGITS.search(text):
            return
        for message in self._understood(text):
            character = (message.character or "") if isinstance(message, events.Key) else ""
            # A lone surrogate is no character, and can't be encoded.
            if not any("\ud800" <= each <= "\udfff" for each in character):
                tell(message)

    def _understood(self, text: str) -> Iterable[Message]:
        try:
            found = list(self._sequences.feed(text))
            if self._sequences._awaiting.timeout is None:
                return found
        except (ArithmeticError, ValueError):  # no such character or coordinate
            found = []
        # The parser now waits for more of an unknown sequence, or has failed: start it anew.
        Parser.__init__(self._sequences)
        return found


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
