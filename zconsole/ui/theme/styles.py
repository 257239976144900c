"""Themes turned into what textual and rich paint with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from zconsole.ui.theme.files import ThemeFile
from zconsole.ui.widgets.draw import ROLES

Palette = Mapping[str, Style]
"""Role to style; ``cursor`` goes over the whole line the cursor is on."""

_ATTRIBUTES: Mapping[str, Style] = {
    "dim": Style(dim=True),
    "bold": Style(bold=True),
    "warning": Style(bold=True),
    "error": Style(bold=True),
    "track": Style(dim=True),
    "accent": Style(bold=True),
    "title": Style(underline=True),
    "focus": Style(underline=True, bold=True),
    "tab": Style(reverse=True),
    "badge-notice": Style(reverse=True),
    "badge-warning": Style(reverse=True, bold=True),
    "badge-error": Style(reverse=True, bold=True),
    "cursor": Style(reverse=True),
}
"""Looks that need no color."""


def textual_theme(theme: ThemeFile) -> Theme:
    """The theme textual's own parts (palette, prompt, notices) are drawn in."""
    colors = theme.colors
    return Theme(
        name=theme.name,
        primary=colors["accent"],
        secondary=colors["accent"],
        warning=colors["warning"],
        error=colors["error"],
        success=colors["notice"],
        accent=colors["accent"],
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
    """Textual's color for what an empty input says is too faint to be read on any theme."""
    if theme.ansi:
        return BUILTIN_THEMES["ansi-dark"].variables
    return {"text-disabled": theme.colors["dim"]}


def palette(theme: ThemeFile, *, no_color: bool = False) -> Palette:
    """A style for every role; without color, and on sixteen colors, attributes tell them apart."""
    if no_color:
        return {role: _ATTRIBUTES.get(role, Style()) for role in (*ROLES, "cursor")}
    color = partial(_style, theme)
    base = color("foreground", "background")
    found = {role: color(role) for role in ROLES if role in theme.colors}
    found |= {
        "": Style(),
        "bold": Style(bold=True),
        "title": color("title", "title-background"),
        "focus": color("accent", "title-background", bold=True),
        "tab": color("title", "cursor-background", bold=True),
        "cursor": color(None, "cursor-background"),
    }
    for severity in ("notice", "warning", "error"):
        found[f"badge-{severity}"] = color(severity, reverse=True)
    over = _sixteen(found) if theme.ansi else found
    return {role: style if role == "cursor" else base + style for role, style in over.items()}


def _sixteen(found: dict[str, Style]) -> Palette:
    """Attributes where the terminal's own colors give no second shade."""
    for role in ("dim", "track", "title", "focus", "tab", "cursor"):
        found[role] = _ATTRIBUTES[role]
    return found


def _style(
    theme: ThemeFile,
    foreground: str | None,
    background: str | None = None,
    *,
    bold: bool | None = None,
    reverse: bool | None = None,
) -> Style:
    return Style(
        color=Color.parse(theme.colors[foreground]).rich_color if foreground else None,
        bgcolor=Color.parse(theme.colors[background]).rich_color if background else None,
        bold=bold,
        reverse=reverse,
    )
