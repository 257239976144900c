"""Position of a replay: time in the recording, progress, and the keys that move in it."""

from __future__ import annotations

from zconsole.ui.display_format import DisplayFormat, percent
from zconsole.ui.panes.help import short_key
from zconsole.ui.widgets.draw import Line, Span, joined, width_of
from zconsole.ui.widgets.graph import bar
from zconsole.units import date_of
from zconsole.zfs.sources.replay import Playback

_WHEN = "%Y-%m-%d %H:%M:%S"
_STATE = 6
_SPEED = 6
_BAR = (5, 60)
"""Least and most cells of the bar."""


def playback_line(playback: Playback, look: DisplayFormat, width: int) -> Line:
    """Return the line; its left part has a fixed width."""
    when = "" if playback.t is None else date_of(playback.t, look.zone).strftime(_WHEN)
    speed = "fast" if playback.speed is None else f"{playback.speed:g}x"
    state = "paused" if playback.paused else "plays"
    left: Line = (
        Span(f" {state:<{_STATE}}", "notice" if playback.paused else "dim"),
        Span(f" {speed:<{_SPEED}}"),
        Span(f" {when} ", "bold"),
    )
    share = f"{percent(playback.share):>8} " if playback.span is not None else ""
    keys = _keys(look, width)
    room = width - width_of(left) - len(share)
    if playback.span is None or room < _BAR[0]:
        return (*left, Span(share))
    if room - width_of(keys) < _BAR[0]:
        keys = ()
    drawn = bar(playback.share, min(_BAR[1], room - width_of(keys)), look.glyphs, "spark")
    return (*left, *drawn, Span(share), *keys)


def _keys(look: DisplayFormat, width: int) -> Line:
    # Keys come in pairs, back and forward; the label is that of the second one.
    pairs = zip(*(iter(look.keys.of("Replay")),) * 2, strict=True)
    parts = [(*short_key(back, "")[:1], *short_key(on)) for back, on in pairs]
    return (Span(" "), *joined(parts, "  ", width)[0])
