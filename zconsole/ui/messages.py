"""What the console's parts tell each other."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from zconsole.monitor.feed import Update


@dataclass
class FramesReady(Message):
    """A round of frames has come; a newer one takes the place of one not yet seen to."""

    update: Update
    arrived: float
    """On the console's clock."""

    def can_replace(self, message: Message) -> bool:
        """Whether ``message``, still waiting, may be dropped for this one."""
        return isinstance(message, FramesReady)


@dataclass
class FeedEnded(Message):
    """There will be no more frames: a recording has come to its end."""


@dataclass
class FactsFound(Message):
    """What the feed knows about one device."""

    pool: str
    key: str
    facts: tuple[tuple[str, str], ...]
