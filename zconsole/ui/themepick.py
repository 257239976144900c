"""The lines of the theme list."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole.themes import ThemeFile
from zconsole.ui.draw import Line, Span
from zconsole.ui.look import Look


def theme_lines(themes: Sequence[ThemeFile], look: Look) -> tuple[Line, ...]:
    """Name and samples of each theme; the screen behind shows the one at the cursor."""
    return tuple((Span(f" {look.text(theme.name)}"),) for theme in themes)
