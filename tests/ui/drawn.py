"""What tests of panes share: how things look, and what drawn lines say."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC

from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Line

LOOK = DisplayFormat(zone=UTC)


def plain(line: Line) -> str:
    """The text of a line without its roles."""
    return "".join(span.text for span in line)


def text(lines: Iterable[Line]) -> str:
    """Drawn lines as plain text."""
    return "\n".join(map(plain, lines))


def flat(said: str) -> str:
    """A screen's text in one line, as if nothing had been wrapped."""
    return " ".join(said.split())
