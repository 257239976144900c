"""A screen with its looks: its text, then the roles of everything that is not plain text.

Roles are used instead of colors: a theme may change its hues, but a missing role or background is
noticed.
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
    """Return the screen's text, and below it the looks of its rows."""
    return f"{screen_text(app)}{HEAD}{screen_looks(app)}"


def screen_looks(app: Console) -> str:
    """Return a line for each run of rows with equal looks: ``3-5: 1-9 badge-warning, 11 bold``."""
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
    """Return the purpose of each style of the theme; plain text on the page is ``""``."""
    names: dict[Style, str] = {Style.null(): ""}
    for ground, styles in app.palette.items():
        for role, style in styles.items():
            names.setdefault(style, f"{role}@{ground}" if ground else role)
    return names


def _row(strip: list[Segment], names: dict[Style, str], colors: dict[str, str]) -> Iterator[str]:
    """Yield the looks of one row, from left to right."""
    at = 0
    for look, run in groupby(strip, key=lambda segment: _look(segment, names, colors)):
        end = at + sum(cell_len(segment.text) for segment in run)
        if look:
            yield f"{_range(at, end - 1)} {look}"
        at = end


def _look(segment: Segment, names: dict[Style, str], colors: dict[str, str]) -> str:
    """Return the role of a segment, or its style without links if it has no role."""
    if segment.style is None:
        return ""
    bare = segment.style.clear_meta_and_links()
    return names[bare] if bare in names else _by_colors(bare, colors)


def _by_colors(style: Style, colors: dict[str, str]) -> str:
    """Return, for example, ``bold foreground on title-background`` for textual's own widgets."""
    words = [colors.get(word, word) for word in str(style).split()]
    return " ".join(words).removesuffix("on background").strip()


def _range(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}-{last}"
