"""Every main screen in every theme: drawn without error, in the theme's colors, readable."""

from __future__ import annotations

import pytest
from rich.style import Style

from tests.ui import frames
from tests.ui.fakes import until, view_state
from tests.ui.theme.contrast import contrast
from tests.ui.theme.test_styles import NEEDED, hexed
from tests.ui.tour import SCENARIOS, TOUR, stops
from zconsole.ui.app import Console
from zconsole.ui.theme.files import find_themes
from zconsole.ui.widgets.lines_view import LinesView

THEMES = find_themes({"HOME": "/nonexistent"}).found
BLANK = " ▄"
"""Cells without text: blanks, and the end of a scroll bar."""


def shown(app: Console, rows: slice = slice(None)) -> dict[Style, str]:
    """Return each style on the screen with its text, except those without visible text."""
    found: dict[Style, str] = {}
    for strip in app.screen._compositor.render_strips()[rows]:
        for segment in strip:
            if segment.text.strip(BLANK) and segment.style is not None:
                bare = segment.style.clear_meta_and_links()
                found[bare] = found.get(bare, "") + segment.text
    return found


def known_to(app: Console) -> set[str]:
    """Return the colors of the theme, and those derived for a background."""
    known = {color.lower() for color in app.theme_files[app.theme].colors.values()}
    for styles in app.palette.values():
        known |= {hexed(c, "") for each in styles.values() for c in (each.color, each.bgcolor)}
    return known | {""}


def faults(app: Console, styles: dict[Style, str]) -> list[tuple[str, str]]:
    """Return text in foreign colors, or too faint to read; tracks of bars may be faint."""
    least, ansi = NEEDED.get(app.theme, 4.5), app.theme_files[app.theme].ansi
    tracks = {looks["track"] for looks in app.palette.values()}
    read = {} if ansi else {each: text for each, text in styles.items() if each not in tracks}
    known = known_to(app)
    return [
        (text, str(style))
        for style, text in read.items()
        if not {hexed(style.color, ""), hexed(style.bgcolor, "")} <= known
        or contrast(hexed(style.color, ""), hexed(style.bgcolor, "")) < least
    ]


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_every_screen_is_drawn_in_the_colors_of_each_theme_and_can_be_read(scenario):
    seen = set()
    async for stop, a in stops(scenario, (80, 24)):
        seen.add(a.screen)
        for name in THEMES:
            a.app.theme = name
            await a.rest()
            styles = shown(a.app)
            assert len(styles) > 2, (stop, name)
            assert faults(a.app, styles) == [], (stop, name)
    assert len(seen) == sum(each.scenario == scenario for each in TOUR), "screens of their own"


async def test_the_palette_is_drawn_in_the_colors_of_each_theme_and_can_be_read():
    async with view_state(frames.resilver()) as (app, pilot, screen):
        for theme in THEMES:
            app.theme = theme
            await pilot.press("ctrl+p")
            await until(pilot, lambda: "Choose a theme" in screen())
            await pilot.press("down")
            await pilot.pause()
            top = app.screen.query_one("#--input").region.y
            styles = shown(app, slice(top, app.screen.query_one("CommandList").region.bottom))
            # Where the thumb of the scroll bar ends in the middle of a cell, a block is drawn.
            styles = {style: text for style, text in styles.items() if text.strip("▁▂▃▄▅▆▇")}
            assert len(styles) > 2, theme
            assert faults(app, styles) == [], theme
            await pilot.press("escape")
            await until(pilot, lambda: app.main_on_top)


async def test_styles_are_worked_out_once_a_theme_for_all_that_is_drawn_in_it():
    async with view_state(frames.resilver()) as (app, _, _):
        dark = app.palette
        assert all(pane._palette is dark for pane in app.screen.query(LinesView))
        app.theme = "light"
        assert app.palette != dark
