"""Position of a replay: time in the recording, progress, and the keys that move in it."""

from __future__ import annotations

from zconsole.ui.display_format import DisplayFormat, percent
from zconsole.ui.panes.help import short_key
from zconsole.ui.widgets.draw import Line, Span, joined, width_of
from zconsole.ui.widgets.graph import bar
from zconsole.units import date_of
from zconsole.zfs.sources.replay import Playback

_WHEN = {80: "%Y-%m-%d %H:%M:%S", 0: "%d %b %H:%M:%S"}
"""Format of the time, by the least width above which it is used."""
_STATE = 6
_SPEED = 5
_BAR = (5, 60)
"""Least and most cells of the bar."""


def playback_line(playback: Playback, look: DisplayFormat, width: int, *, ended: bool) -> Line:
    """Return the line; its left part has a fixed width."""
    form = next(form for least, form in _WHEN.items() if width > least)
    when = "" if playback.t is None else date_of(playback.t, look.zone).strftime(form)
    speed = "fast" if playback.speed is None else f"{playback.speed:g}x"
    state = "ended" if ended else "paused" if playback.paused else "plays"
    left: Line = (
        Span(f" {state:<{_STATE}}", "notice" if playback.paused else "dim"),
        Span(f" {speed:<{_SPEED}}"),
        Span(f" {when} ", "bold"),
    )
    share = f"{percent(playback.share):>8} " if playback.span is not None else ""
    # Keys come in pairs, back and forward; the label is that of the second one.
    pairs = zip(*(iter(look.keys.of("Replay")),) * 2, strict=True)
    parts = [(*short_key(back, "")[:1], *short_key(on)) for back, on in pairs]
    room = width - width_of(left) - len(share)
    if playback.span is None:  # cannot be moved about in
        return (*left, Span(share), *parts[-1])
    keys = joined(parts, "  ", room)[0]
    keys = keys if width_of(keys) <= room else ()
    cells = min(_BAR[1], room - width_of(keys))
    drawn = bar(playback.share, cells, look.glyphs, "spark") if cells >= _BAR[0] else ()
    return (*left, *drawn, Span(share), *keys)
