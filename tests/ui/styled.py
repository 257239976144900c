"""A screen with what it looks like: its text, then the roles of what is not plain text.

Roles instead of colors: a theme may choose other hues, a lost role or ground shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tests.ui.fakes import screen_text
from zconsole.ui.app import Console

HEAD = "-- looks: rows, then columns and role, with the ground it is on\n"


def styled(app: Console) -> str:
    """The screen's text and below it the looks of its rows."""
    return f"{screen_text(app)}{HEAD}{screen_looks(app)}"


def screen_looks(app: Console) -> str:
    """A line for each run of rows that look the same: ``3-5: 1-9 badge-warning, 11 bold``."""
    names = _names(app)
    colors = {value: name for name, value in reversed(app.theme_files[app.theme].colors.items())}
    strips = app.screen._compositor.render_strips()
    rows = [", ".join(_row(strip, names, colors)) for strip in strips]
    lines: list[str] = []
    for looks, run in groupby(enumerate(rows), key=lambda numbered: numbered[1]):
        numbers = [number for number, _ in run]
        if looks:
            lines.append(f"{_range(numbers[0], numbers[-1])}: {looks}\n")
    return "".join(lines)


def _names(app: Console) -> dict[Style, str]:
    """What each style of the theme is for; plain text on the page is ``""``."""
    names: dict[Style, str] = {Style.null(): ""}
    for ground, styles in app.palette.items():
        for role, style in styles.items():
            names.setdefault(style, f"{role}@{ground}" if ground else role)
    return names


def _row(strip: list[Segment], names: dict[Style, str], colors: dict[str, str]) -> Iterator[str]:
    """The looks of one row, from its left to its right."""
    at = 0
    for look, run in groupby(strip, key=lambda segment: _look(segment, names, colors)):
        end = at + sum(cell_len(segment.text) for segment in run)
        if look:
            yield f"{_range(at, end - 1)} {look}"
        at = end


def _look(segment: Segment, names: dict[Style, str], colors: dict[str, str]) -> str:
    """The role of a segment, or where it has none of ours its style without what it does."""
    if segment.style is None:
        return ""
    bare = segment.style.clear_meta_and_links()
    return names[bare] if bare in names else _by_colors(bare, colors)


def _by_colors(style: Style, colors: dict[str, str]) -> str:
    """``bold foreground on title-background``, which textual's own parts are drawn in."""
    words = [colors.get(word, word) for word in str(style).split()]
    return " ".join(words).removesuffix("on background").strip()


def _range(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}-{last}"
