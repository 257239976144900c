"""The help screen and the footer, both made from the table of keys."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.keys import COLUMNS, GROUPS, MARKS, TABLE, Offer, footer_keys, shown
from zconsole.ui.widgets.draw import Line, Span, beside, crop, fit, joined, width_of

_KEY = 16


def help_lines(look: DisplayFormat, width: int, offers: Sequence[Offer] = ()) -> tuple[Line, ...]:
    """Every key by group, then what marks and columns mean."""
    lines: list[Line] = []
    for group in GROUPS:
        lines.append((Span(f" {group}", "bold"),))
        for key in TABLE:
            if key.group == group:
                lines.extend(_pair(" ".join(map(shown, key.keys)), key.text, width))
    if offers:
        lines.extend(_actions(offers, width, look))
    for title, pairs in (("Marks", MARKS), ("Columns", COLUMNS)):
        lines.append((Span(f" {title}", "bold"),))
        for key_shown, text in pairs:
            lines.extend(_pair(key_shown, text, width))
    return tuple(lines)


def _actions(offers: Sequence[Offer], width: int, look: DisplayFormat) -> list[Line]:
    """The keys that change something; a reason that keeps from all of them is in the heading."""
    reasons = {offer.reason for offer in offers if not offer.enabled}
    if len(reasons) != 1 or any(offer.enabled for offer in offers):
        return [(Span(" Actions", "bold"),), *(ln for o in offers for ln in _offer(o, width, look))]
    heading = (Span(" Actions", "bold"), Span(f"  not now: {reasons.pop()}", "warning"))
    keys = (line for offer in offers for line in _offer(offer._replace(reason=""), width, look))
    return [crop(heading, width, look.glyphs.ellipsis), *keys]


def _offer(offer: Offer, width: int, look: DisplayFormat) -> Sequence[Line]:
    why = f" (not now: {offer.reason})" if offer.reason and not offer.enabled else ""
    text = look.text(f"{offer.key.text}{why}")
    lines = _pair(" ".join(map(shown, offer.key.keys)), text, width)
    if offer.enabled:
        return lines
    return [tuple(Span(span.text, "dim") for span in line) for line in lines]


def _pair(key: str, text: str, width: int) -> tuple[Line, ...]:
    """A key and what it does, wrapped beside it."""
    return beside(Span(f"  {fit(key, _KEY)}", "accent"), text, width - 1)


def footer_line(width: int, *, several_pools: bool = False, offers: Sequence[Offer] = ()) -> Line:
    """The keys that make sense now, as many as fit whole."""
    parts: list[Line] = [
        (Span(f"{key} ", "accent"), Span(word, "dim"))
        for key, word in footer_keys(TABLE, several_pools)
    ]
    extra: list[Line] = [
        (
            Span(f"{shown(o.key.keys[0])} ", "accent" if o.enabled else "track"),
            Span(o.key.short, "dim" if o.enabled else "track"),
        )
        for o in offers
        if o.key.short
    ]
    quit_part = parts.pop()
    lines = joined([*parts[:2], *extra, *parts[2:]], "  ", width - width_of(quit_part) - 4)
    first = lines[0] if lines else ()
    return (Span(" "), *first, Span("  "), *quit_part)
