"""Reads what a terminal sends: keys, the mouse, pastes, and replies that are not keys.

Esc with a key right behind it is Esc and that key, never Alt with the key: over a slow link both
come in one packet, which is just what a terminal sends for Alt with the key. Alt means nothing to
the console; an Esc that is lost leaves a screen open that nobody wants.

A paste is one event, whatever it contains, and a late reply of the terminal (DCS, OSC, APC, or a
CSI nobody knows) is dropped whole: its letters must not act.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from enum import Enum

from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._parser import ParseEOF, Parser, ParseTimeout, Peek1, Read1, TokenCallback
from textual._xterm_parser import (
    BRACKETED_PASTE_END,
    BRACKETED_PASTE_START,
    SPECIAL_SEQUENCES,
    XTermParser,
)
from textual.constants import ESCAPE_DELAY
from textual.message import Message

_ESC, _BEL = "\x1b", "\x07"
_LONGEST = 64
"""Characters of a sequence that can mean something; numbers of this length fit everywhere."""
_DIGITS = re.compile(r"\d{8}")
"""A number no terminal means, and more than a character or a coordinate can be."""
_CSI = re.compile(r"\x1b\[(?:[0-?]+[ -/]*[@-~]|M[^\x1b]{3})", re.DOTALL)
"""A whole sequence with parameters, or the mouse of an old terminal."""
_CSI_BEGUN = re.compile(r"\x1b\[(?:[0-?]*[ -/]*|M[^\x1b]{0,2})", re.DOTALL)
_STRING = re.compile(r"\x1b(?:\]\d+;|P[\d;]*[>!$+|]|_G)")
"""How the replies begin that end with ST or BEL: OSC, DCS, APC."""
_STRING_BEGUN = re.compile(r"\x1b(?:\]\d*|P[\d;]*|_)")
_SILENCE = 1.0
"""Seconds after which nothing more is expected of a reply that was cut off."""
_PASTE_SILENCE = 5.0
"""Seconds after which nothing more is expected of a paste: a slow link may pause."""
_PASTE_KEPT = 65536
"""Characters of a paste that are kept; what follows is dropped."""

_KNOWN = SPECIAL_SEQUENCES | {key for key in ANSI_SEQUENCES_KEYS if key[:2] in ("\x1b[", "\x1bO")}
_PREFIXES = {key[:end] for key in _KNOWN for end in range(1, len(key))}

_Reading = Generator[Read1 | Peek1, str, str]
"""Asks for characters; returns those that belong to what follows."""


class _Kind(Enum):
    """What characters that begin with Esc are so far."""

    BEGUN = 0
    SEQUENCE = 1
    STRING = 2
    KEYS = 3


def _kind(text: str) -> _Kind:
    if text in _KNOWN or _CSI.fullmatch(text):
        return _Kind.SEQUENCE
    if _STRING.fullmatch(text):
        return _Kind.STRING
    begun = text in _PREFIXES or _CSI_BEGUN.fullmatch(text) or _STRING_BEGUN.fullmatch(text)
    return _Kind.BEGUN if begun else _Kind.KEYS


class KeyParser(Parser[Message]):
    """Divides the input into keys, sequences, strings and pastes; textual's parser reads those."""

    def __init__(self) -> None:
        self._sequences = XTermParser()
        self._unread = ""
        super().__init__()

    @property
    def is_amid(self) -> bool:
        """Whether something has begun that time alone may end."""
        return self._timeout_time is not None

    def parse(self, token_callback: TokenCallback[Message]) -> Generator[Read1 | Peek1, str, None]:
        """Read until the end of the input; see Parser."""
        while True:
            try:
                char = yield from self._next(None)
                if char == _ESC:
                    self._unread = (yield from self._escape(token_callback)) + self._unread
                else:
                    self._read(char, token_callback)
            except ParseEOF:
                return

    def _next(self, timeout: float | None) -> _Reading:
        """Return one character; ``timeout`` in seconds. Raises ParseTimeout and ParseEOF."""
        if self._unread:
            char, self._unread = self._unread[0], self._unread[1:]
            return char
        return (yield self.read1(timeout))

    def _escape(self, tell: TokenCallback[Message]) -> _Reading:
        """Read on after an Esc."""
        text, kind, rest = _ESC, _Kind.BEGUN, ""
        while kind is _Kind.BEGUN:
            is_csi = len(text) > 2 and text[1] == "["
            try:
                char = yield from self._next(_SILENCE if is_csi else ESCAPE_DELAY)
            except ParseTimeout:
                kind = _Kind.SEQUENCE if is_csi else _Kind.KEYS
                break
            if char == _ESC:
                kind, rest = (_Kind.SEQUENCE if is_csi else _Kind.KEYS), char
                break
            # A sequence without end takes no memory; its last character still ends it.
            text = text[:_LONGEST] + char
            kind = _kind(text)
        if text == BRACKETED_PASTE_START:
            return (yield from self._paste(tell))
        if kind is _Kind.STRING:
            return (yield from self._string())
        if kind is _Kind.KEYS:
            tell(events.Key("escape", _ESC))
            return text[1:] + rest
        self._read(text, tell)
        return rest

    def _string(self) -> _Reading:
        """Drop a reply up to its end; a control character is a key, and ends it, too."""
        while True:
            try:
                char = yield from self._next(_SILENCE)
                if char == _ESC:
                    behind = yield from self._next(ESCAPE_DELAY)
                    return "" if behind == "\\" else char + behind
            except ParseTimeout:
                return ""
            if char == _BEL or not char.isprintable():
                return "" if char == _BEL else char

    def _paste(self, tell: TokenCallback[Message]) -> _Reading:
        """Read a paste to its end, and tell what it contains as one event."""
        text = last = ""
        parts: list[str] = []
        while last != BRACKETED_PASTE_END:
            try:
                char = yield from self._next(_PASTE_SILENCE)
            except ParseTimeout:
                break
            last = (last + char)[-len(BRACKETED_PASTE_END) :]
            if len(parts) < _PASTE_KEPT:
                parts.append(char)
        text = "".join(parts).removesuffix(BRACKETED_PASTE_END)
        tell(events.Paste("".join(c if c.isprintable() or c in "\n\t" else "" for c in text)))
        return ""

    def _read(self, text: str, tell: TokenCallback[Message]) -> None:
        """Tell what one character or one whole sequence means."""
        if len(text) > _LONGEST or _DIGITS.search(text):
            return
        for message in self._understood(text):
            character = (message.character or "") if isinstance(message, events.Key) else ""
            # Half of a surrogate pair is no character.
            if not any("\ud800" <= each <= "\udfff" for each in character):
                tell(message)

    def _understood(self, text: str) -> Iterable[Message]:
        try:
            found = list(self._sequences.feed(text))
            if self._sequences._awaiting.timeout is None:
                return found
        except (ArithmeticError, ValueError):  # no such character or place on the screen
            found = []
        # It waits for more of a sequence it does not know, or has ended with an error.
        Parser.__init__(self._sequences)
        return found
