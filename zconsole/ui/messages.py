"""Messages for a while: shown beside the keys, on the screen they are about, and once each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from textual.notifications import SeverityLevel
from textual.screen import Screen

from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Line, Span, at_most, beside

SETTLES = 0.5
"""Seconds in which a message may go along to another screen: a flow complains, then asks again."""
PAGE = 4.0
"""Seconds that a line of a message is shown whole where it has one line of the screen."""
_SHARE = 3
"""The part of the screen that messages may take: one in so many lines."""
_ROLES = {"information": "notice", "warning": "warning", "error": "error"}


@dataclass(slots=True)
class Message:
    """Something that is said for a while."""

    message: str
    severity: SeverityLevel
    begun: float
    ends: float
    screen: Screen[object] | None = None
    """Where it stays; None while it goes along with the operator."""


def wrapped(text: str, severity: SeverityLevel, width: int) -> list[Line]:
    """The lines of a message."""
    role = _ROLES[severity]
    mark = Span(" ! " if severity != "information" else " ", role)
    return [*chain.from_iterable(beside(mark, t, width - 1, role) for t in text.split("\n"))]


@dataclass(slots=True)
class Messages:
    """What is said now, the newest first."""

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
    ) -> bool:
        """Say something at ``now``; whether it is new, not said on ``screen``, the one on top.

        What is said again lasts longer.
        """
        self.drop(now)
        for each in self.said:
            if each.message == text and each.screen in (None, screen):
                each.ends = max(each.ends, now + lasts)
                return False
        self.said.insert(0, Message(text, severity, now, now + lasts))
        return True

    def drop(self, now: float) -> None:
        """Forget what has been said long enough."""
        self.said = [each for each in self.said if each.ends > now]

    def forget(self, beginning: str) -> None:
        """Say no longer what begins so: it is not true any more."""
        self.said = [each for each in self.said if not each.message.startswith(beginning)]

    def settle(self, screen: Screen[object], now: float) -> None:
        """Have what was said a moment ago stay on the screen that is on top now."""
        for each in self.said:
            if each.screen is None and now >= each.begun + SETTLES:
                each.screen = screen

    def page(self, screen: Screen[object], now: float) -> int:
        """Which of the ``lines`` has its turn; past the last once each of them was shown."""
        begun = max(each.begun for each in self.said if each.screen in (None, screen))
        return int((now - begun) / PAGE)

    def lines(
        self,
        screen: Screen[object],
        look: DisplayFormat,
        width: int,
        height: int,
    ) -> tuple[Line, ...]:
        """What is said on a screen, wrapped; the newest first, as much as there is room for."""
        found: list[Line] = []
        for each in self.said:
            if each.screen in (None, screen):
                found += wrapped(each.message, each.severity, width)
        most = max(1, height // _SHARE)
        return tuple(at_most(most, found, look.glyphs.ellipsis))
