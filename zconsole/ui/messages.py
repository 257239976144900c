"""Messages shown for a while in the footer of the screen they are about, each only once.

None outlives what it speaks of: a newer one about the same subject replaces it, the answer to a key
goes with the next key, and one that follows a state changes or goes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from textual.notifications import SeverityLevel
from textual.screen import Screen

from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Line, Lines, Span, at_most, beside

SETTLES = 0.5
"""Seconds in which a message moves on to another screen: a flow may complain, then ask again."""
PAGE = 4.0
"""Seconds for which each line of a message is shown if there is room for one line only."""
_SHARE = 3
"""Divisor of the screen's height that gives the most lines of messages."""
KEY = "key"
"""Subject of the answers to keys, such as that one does nothing here."""
_ROLES = {"information": "notice", "warning": "warning", "error": "error"}


@dataclass(slots=True)
class Message:
    """A message that is shown for a while."""

    message: str
    severity: SeverityLevel
    begun: float
    ends: float
    screen: Screen[object] | None = None
    """Screen on which it stays; None while it moves on with the operator."""
    about: object = None
    """Its subject, of which it is the newest message; None if it has none."""
    follows: Callable[[], str] | None = None
    """Returns what it says now; empty once it is no longer true."""


def wrapped(text: str, severity: SeverityLevel, width: int) -> list[Line]:
    """Wrap a message into lines, with a mark for warnings and errors."""
    role = _ROLES[severity]
    mark = Span(" ! " if severity != "information" else " ", role)
    return [*chain.from_iterable(beside(mark, t, width - 1, role) for t in text.split("\n"))]


@dataclass(slots=True)
class Messages:
    """The present messages, newest first."""

    said: list[Message] = field(default_factory=list)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.said)

    def add(
        self,
        text: str,
        severity: SeverityLevel,
        now: float,
        lasts: float,
        screen: Screen[object] | None = None,
        about: object = None,
        follows: Callable[[], str] | None = None,
    ) -> bool:
        """Add a message at ``now``; return False if it is shown on ``screen``, the one on top.

        A message that is shown already is extended; others ``about`` the same subject are dropped.
        """
        self.drop(now)
        for each in self.said:
            if each.message == text and each.screen in (None, screen):
                each.ends = max(each.ends, now + lasts)
                return False
        self.forget(about)
        self.said.insert(0, Message(text, severity, now, now + lasts, about=about, follows=follows))
        return True

    def drop(self, now: float) -> None:
        """Drop the messages whose time is over, and those that are no longer true."""
        for each in self.said:
            if each.follows is not None:
                each.message = each.follows()
        self.said = [each for each in self.said if each.ends > now and each.message]

    def forget(self, about: object) -> bool:
        """Drop the messages about a subject, not None; return whether there were any."""
        before = len(self.said)
        self.said = [each for each in self.said if about is None or each.about != about]
        return len(self.said) < before

    def forget_before(self, screen: Screen[Any], time: float) -> None:
        """Drop the messages of a screen that were said before a time."""
        self.said = [each for each in self.said if each.screen is not screen or each.begun >= time]

    def settle(self, screen: Screen[object], now: float) -> None:
        """Bind messages older than SETTLES to the screen that is on top now."""
        for each in self.said:
            if each.screen is None and now >= each.begun + SETTLES:
                each.screen = screen

    def page(self, screen: Screen[object], now: float) -> int:
        """Return the index of the line to show now; past the last one once each was shown."""
        begun = max(each.begun for each in self.said if each.screen in (None, screen))
        return int((now - begun) / PAGE)

    def lines(
        self,
        screen: Screen[object],
        look: DisplayFormat,
        width: int,
        height: int,
    ) -> Lines:
        """Return the messages of a screen, wrapped; newest first, as many as there is room for."""
        found: list[Line] = []
        for each in self.said:
            if each.screen in (None, screen):
                found += wrapped(each.message, each.severity, width)
        most = max(1, height // _SHARE)
        return tuple(at_most(most, found, look.glyphs.ellipsis))
