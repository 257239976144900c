"""A prompt's edge and cursor are visible while something is typed."""

from __future__ import annotations

import pytest
from rich.style import Style

from tests.ui.actions.acting import acting
from tests.ui.theme.contrast import contrast
from tests.ui.theme.test_styles import hexed
from zconsole.ui.app import Console
from zconsole.ui.dialogs.screens import Prompt
from zconsole.ui.theme.files import find_themes

THEMES = find_themes({"HOME": "/nonexistent"}).found
SEEN = 3.0
"""Minimum contrast of visible elements (WCAG 2.2, 1.4.11)."""
WAYS = {
    "filter": ("slash", "a"),
    "answer": ("T", "V", "5"),
    "what if": ("w", "r"),
}


def cells(app: Console) -> list[tuple[str, Style]]:
    """Return the cells of the focused prompt, from its left edge."""
    assert isinstance(app.focused, Prompt)
    region = app.focused.region
    strip = app.screen._compositor.render_strips()[region.y]
    every = [(text, segment.style or Style()) for segment in strip for text in segment.text]
    return every[region.x : region.right]


def is_seen(style: Style, beside: Style) -> bool:
    """Return whether a cell stands out from its neighbors."""
    if style.reverse:
        return True
    return contrast(hexed(style.bgcolor, ""), hexed(beside.bgcolor, "")) >= SEEN


@pytest.mark.parametrize("keys", WAYS.values(), ids=WAYS)
async def test_its_edge_and_its_cursor_are_seen_in_every_theme(keys):
    async with acting("resilver", (80, 24)) as a:
        await a.press(*keys)
        for name in THEMES:
            a.app.theme = name
            await a.rest()
            (edge, style), _, cursor, beside, *_ = cells(a.app)
            assert edge.strip(), name
            assert THEMES[name].ansi or (
                contrast(hexed(style.color, ""), hexed(style.bgcolor, "")) >= SEEN
            ), name
            assert is_seen(cursor[1], beside[1]), name


async def test_without_color_both_are_seen_too(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with acting("resilver", (80, 24)) as a:
        await a.press("slash", "a")
        (edge, _), _, (_, cursor), (_, beside), *_ = cells(a.app)
        assert edge.strip()
        assert cursor.reverse
        assert not beside.reverse


async def test_its_cursor_stands_still():
    async with acting("resilver", (80, 24)) as a:
        await a.press("slash")
        assert not a.app.focused.cursor_blink
