"""Styles for textual and rich, made from themes."""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from zconsole.ui.theme.files import ThemeFile
from zconsole.ui.widgets.draw import GROUNDS, ROLES

Palette = Mapping[str, Mapping[str, Style]]
"""Ground to role to style."""

TEXT = ("foreground", "dim", "good", "notice", "warning", "error", "key", "spark", "bar", "title")
"""The colors of a theme that are used for text."""

_STRONG, _FAIR = 7.0, 4.5
"""Contrast of text according to WCAG 2, levels AAA and AA."""

_ATTRIBUTES: Mapping[str, Style] = {
    "dim": Style(dim=True),
    "bold": Style(bold=True),
    "good": Style(bold=True),
    "warning": Style(bold=True),
    "error": Style(bold=True),
    "track": Style(dim=True),
    "key": Style(bold=True),
    "title": Style(underline=True),
    "focus": Style(reverse=True, bold=True),
    "tab": Style(reverse=True),
    "badge-notice": Style(reverse=True),
    "badge-warning": Style(reverse=True, bold=True),
    "badge-error": Style(reverse=True, bold=True),
}
"""Attributes of roles that work without color."""

_GROUND_ATTRIBUTES: Mapping[str, Style] = {
    "": Style(),
    "cursor": Style(reverse=True, dim=False),  # dim is unreadable on a bright ground
    "rest": Style(underline=True),
    "tint": Style(bold=True),
}

_BOLD = frozenset({"bold", "key", "focus", "tab"})
_REVERSED = {"badge-notice": "notice", "badge-warning": "warning", "badge-error": "error"}
_PLAIN_IN_SIXTEEN = ("dim", "track", "title", "focus", "tab")
"""Roles told apart by attributes, since the terminal's own colors have no second shade."""
_PATCHES = ("warning", "error", "badge-warning", "badge-error")
"""Roles that keep their colors in a reversed line."""


def textual_theme(theme: ThemeFile) -> Theme:
    """Return the theme for textual's own parts (palette, prompt, notices)."""
    colors = theme.colors
    return Theme(
        name=theme.name,
        primary=colors["key"],
        warning=colors["warning"],
        error=colors["error"],
        success=colors["good"],
        foreground=colors["foreground"],
        background=colors["background"],
        surface=colors["background"],
        panel=colors["title-background"],
        boost=colors["title-background"],
        dark=theme.dark,
        ansi=theme.ansi,
        variables=_variables(theme),
    )


def _variables(theme: ThemeFile) -> dict[str, str]:
    """Return stronger colors for the placeholder of an input and for the palette's cursor.

    Textual's own are too faint.
    """
    if theme.ansi:
        return BUILTIN_THEMES["ansi-dark"].variables
    colors = _parsed(theme)
    cursor = _upon(colors["cursor-background"], colors, _least(colors))
    return {
        "text-disabled": theme.colors["dim"],
        "block-cursor-blurred-background": theme.colors["cursor-background"],
        "block-cursor-blurred-foreground": cursor["foreground"].hex,
        "block-cursor-blurred-text-style": "bold",
    }


def palette(theme: ThemeFile, *, no_color: bool = False) -> Palette:
    """Return a style for every role on every ground.

    Without color, and with sixteen colors, attributes tell the roles apart. Otherwise each ground
    moves each color toward black or white until it is readable there.
    """
    if no_color:
        return _with_attributes({role: _ATTRIBUTES.get(role, Style()) for role in ROLES})
    colors = _parsed(theme)
    page = {role: _style(role, colors) for role in ROLES}
    if theme.ansi:
        base = Style(color="default", bgcolor="default")
        page |= {role: base + _ATTRIBUTES[role] for role in _PLAIN_IN_SIXTEEN}
        return _with_attributes(page)
    back, cursor = colors["background"], colors["cursor-background"]
    grounds = {
        "cursor": cursor,
        "rest": back.blend(cursor, 0.3),
        "tint": back.blend(colors["warning"], 0.2),
    }
    least = _least(colors)
    upon = {ground: _upon(color, colors, least) for ground, color in grounds.items()}
    page["tab"] = _style("tab", upon["cursor"])
    return {"": page} | {
        ground: {role: _style(role, shades) for role in ROLES} for ground, shades in upon.items()
    }


def _parsed(theme: ThemeFile) -> dict[str, Color]:
    return {name: Color.parse(value) for name, value in theme.colors.items()}


def _least(colors: Mapping[str, Color]) -> float:
    """Return the contrast for text on every ground: WCAG's AAA if the page has it, otherwise AA."""
    weakest = min(contrast(colors[name], colors["background"]) for name in TEXT)
    return _STRONG if weakest >= _STRONG else _FAIR


def _with_attributes(page: Mapping[str, Style]) -> Palette:
    """Return the styles with attributes added for every ground.

    On the cursor, only trouble keeps its color: in a reversed line any other color would be a
    patch.
    """
    bare = Style(color="default", bgcolor="default")
    even = {
        role: style + bare if style.color and role not in _PATCHES else style
        for role, style in page.items()
    }
    grounds = {ground: even if ground == "cursor" else page for ground in GROUNDS}
    return {
        ground: {role: style + _GROUND_ATTRIBUTES[ground] for role, style in styles.items()}
        for ground, styles in grounds.items()
    }


def _style(role: str, colors: Mapping[str, Color]) -> Style:
    """Return the style of a role in these colors."""
    front = _REVERSED.get(role, role if role in colors else "foreground")
    back = "background"
    if role == "title":
        back = "title-background"
    elif role == "focus":
        front, back = "background", "key"
    return Style(
        color=colors[front].rich_color,
        bgcolor=colors[back].rich_color,
        bold=role in _BOLD or None,
        reverse=role in _REVERSED or None,
    )


def _upon(ground: Color, colors: Mapping[str, Color], least: float) -> dict[str, Color]:
    """Return the colors of a theme adapted to a ground other than the page."""
    far = max(Color(0, 0, 0), Color(255, 255, 255), key=lambda end: contrast(end, ground))
    shades: dict[str, Color] = {}
    for name in TEXT:  # the color itself, or the nearest readable one toward black or white
        mixed = (colors[name].blend(far, step / 10) for step in range(10))
        shades[name] = next((each for each in mixed if contrast(each, ground) >= least), far)
    if shades["foreground"] != colors["foreground"]:  # body text stays the strongest
        shades["foreground"] = far
    return {**colors, **shades, "background": ground, "title-background": ground}


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two colors, 1 to 21 (WCAG 2.2)."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: Color) -> float:
    parts = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in color.normalized
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
