"""Helpers of pane tests: how to draw, and the text of drawn lines."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC

from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Line

LOOK = DisplayFormat(zone=UTC)


def plain(line: Line) -> str:
    """Return the text of a line without its roles."""
    return "".join(span.text for span in line)


def text(lines: Iterable[Line]) -> str:
    """Return drawn lines as plain text."""
    return "\n".join(map(plain, lines))


def flat(said: str) -> str:
    """Return a screen's text in one line, as if nothing had been wrapped."""
    return " ".join(said.split())
