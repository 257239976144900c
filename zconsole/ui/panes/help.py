"""The help screen and the footer, both made from the table of keys."""

from __future__ import annotations

from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.keys import ACTIONS, COLUMNS, GROUPS, MARKS, TABLE, Key, shown
from zconsole.ui.widgets.draw import Line, Span, beside, crop, fit, joined, width_of

_KEY = 16


def help_lines(look: DisplayFormat, width: int, denied: str | None = None) -> tuple[Line, ...]:
    """Every key by group, then what marks and columns mean.

    ``denied``: why nothing may be changed, empty when it may; None leaves those keys out.
    """
    lines: list[Line] = []
    for group in GROUPS:
        lines.append((Span(f" {group}", "bold"),))
        for key in TABLE:
            if key.group == group:
                lines.extend(_key(key, width))
    if denied is not None:
        lines.extend(_actions(denied, look, width))
    for title, pairs in (("Marks", MARKS), ("Columns", COLUMNS)):
        lines.append((Span(f" {title}", "bold"),))
        for key_shown, text in pairs:
            lines.extend(_pair(key_shown, text, width))
    return tuple(lines)


def _actions(denied: str, look: DisplayFormat, width: int) -> list[Line]:
    """The keys that change something; grey under the reason where nothing may be changed."""
    keys = [line for key in ACTIONS for line in _key(key, width)]
    if not denied:
        return [(Span(" Actions", "bold"),), *keys]
    heading = (Span(" Actions", "bold"), Span(f"  not now: {denied}", "warning"))
    grey = (tuple(Span(span.text, "dim") for span in line) for line in keys)
    return [crop(heading, width, look.glyphs.ellipsis), *grey]


def _key(key: Key, width: int) -> tuple[Line, ...]:
    return _pair(" ".join(map(shown, key.keys)), key.text, width)


def _pair(key: str, text: str, width: int) -> tuple[Line, ...]:
    """A key and what it does, wrapped beside it."""
    return beside(Span(f"  {fit(key, _KEY)}", "key"), text, width - 1)


def footer_line(width: int, *, several_pools: bool = False, denied: str | None = None) -> Line:
    """The keys that make sense now, as many as fit whole; ``denied`` as for ``help_lines``."""
    parts = [_short(shown(key.keys[0]), key.short) for key in TABLE if key.short]
    if several_pools:
        parts[1:1] = [_short("[ ]", "pool"), _short("o", "all pools")]
    actions = () if denied is None else (key for key in ACTIONS if key.short)
    grey = ("track", "track") if denied else ("key", "dim")
    extra = [_short(shown(key.keys[0]), key.short, *grey) for key in actions]
    quit_part = parts.pop()
    lines = joined([*parts[:2], *extra, *parts[2:]], "  ", width - width_of(quit_part) - 4)
    first = lines[0] if lines else ()
    return (Span(" "), *first, Span("  "), *quit_part)


def _short(key: str, word: str, key_role: str = "key", role: str = "dim") -> Line:
    return (Span(f"{key} ", key_role), Span(word, role))
