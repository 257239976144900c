"""Help, legend, footers and the position of a replay, all with keys from their table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.cells import cell_len

from zconsole.pool.model import NOTHING
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.keys import ACTS, GROUPS, LEGEND, Key, character_of, shown
from zconsole.ui.widgets.draw import Line, Span, beside, fit, joined, width_of
from zconsole.ui.widgets.graph import bar
from zconsole.units import date_of, percent
from zconsole.zfs.sources.replay import Playback

_KEY, _WORD = 16, 18
"""Cells of a key, and of a word in the legend, including the gap after them."""


def help_lines(
    look: DisplayFormat, width: int, denied: str | None = None, *, played: bool = False
) -> tuple[Line, ...]:
    """Return all keys of the main screen by group, those of a replay first if one is ``played``.

    ``denied``: why nothing may be changed, empty if changes are allowed; None omits those keys.
    """
    lines: list[Line] = []
    for group in sorted(GROUPS, key=lambda group: not (played and group == "Replay")):
        keys = (k for k in look.keys.of(group) if denied is not None or k.name != ACTS)
        lines += _group(group, keys, width)
    if denied is None:
        return tuple(lines)
    heading, *acting = _group("Actions", look.keys.actions, width)
    if denied:  # dim, below the reason
        heading = look.crop((*heading, Span(f"  not now: {denied}", "warning")), width)
        acting = [tuple(Span(span.text, "dim") for span in line) for line in acting]
    return (*lines, heading, *acting)


def screen_help_lines(
    groups: Sequence[str],
    look: DisplayFormat,
    width: int,
    topics: Sequence[tuple[str, str]] = (),
    *,
    typing: bool = False,
) -> tuple[Line, ...]:
    """Return the topics and keys of a screen over the main one, and keys that work everywhere.

    While ``typing``, keys that type a character or move in the text are left out.
    """
    room = max((cell_len(word) + 2 for word, _ in topics), default=0)
    about = [line for each in topics for line in _pair(*each, width, "bold", room)]
    named = {group: look.keys.of(group) for group in groups}
    named["On every screen"] = tuple(
        key._replace(text=key.over or key.text)
        for key in look.keys.looks
        if key.everywhere and key.group != "Replay"  # few consoles are replays
    )
    for title, keys in named.items() if typing else ():
        left = (key._replace(keys=tuple(k for k in key.keys if not _is_typed(k))) for key in keys)
        named[title] = tuple(key for key in left if key.keys)
    own = (line for title, keys in named.items() if keys for line in _group(title, keys, width))
    return (*about, *own)


def _is_typed(key: str) -> bool:
    """Return whether an input takes a key: for a character, or to move in its text."""
    return character_of(key) is not None or key in ("space", "home", "end")


def legend_lines(look: DisplayFormat, width: int, interval: float = 0.0) -> tuple[Line, ...]:
    """Return the meaning of marks, colors, columns and graphs; ``interval`` in seconds."""
    lines: list[Line] = []
    for title, rows in LEGEND.items():
        lines.append((Span(f" {title}", "bold"),))
        for role, word, text in rows:
            said = word.format_map(look.glyphs._asdict())
            lines.extend(_pair(said, text, width, role, _WORD))
    if interval:
        pace = f"a sparkline of 20 bars shows the last {20 * interval:g}s"
        lines.extend(_pair("sparkline", pace, width, "spark", _WORD))
    return tuple(look.crop(line, width) for line in lines)


def _group(title: str, keys: Iterable[Key], width: int) -> Iterator[Line]:
    yield (Span(f" {title}", "bold"),)
    for key in keys:
        yield from _pair(" ".join(map(shown, key.keys)), key.text, width)


def _pair(
    word: str, text: str, width: int, role: str = "key", room: int = _KEY
) -> tuple[Line, ...]:
    """Return a key or word with its meaning wrapped beside it."""
    return beside(Span(f"  {fit(word, max(room, cell_len(word) + 2))}", role), text, width - 1)


def footer_line(
    look: DisplayFormat,
    width: int,
    *,
    several_pools: bool = False,
    denied: str | None = None,
    played: Playback | None = None,
    ended: bool = False,
    paused: bool = False,
    zoomed: bool = False,
    first: str = "",
    own: Sequence[tuple[str, str]] = (),
) -> Line:
    """Return the keys that are useful now, as many as fit; ``denied`` as in ``help_lines``.

    ``played``: controls of a replay, which Space pauses instead of folding, or plays again once it
    has ``ended``.
    ``paused``: whether the replay or the display is paused.
    ``zoomed``: whether a pane has the whole screen, which the first key then undoes.
    ``first`` is the title of the most useful action. ``own``: titles and labels of keys in the
    focused pane; they come before all others, and replace those of the list.
    """
    words = []
    if zoomed:
        own = [("zoom", "zoom out"), *(each for each in own if each[0] != "zoom")]
    for title, word in own:  # the most readable of its keys first: End, not G
        key = look.keys.titled(title)
        spelled = sorted(key.keys, key=len, reverse=True)
        words.append(short_key(key._replace(keys=tuple(spelled)), word))
    shorts = [key for key in look.keys.looks if key.short and key.group != "Replay"]
    if paused:
        shorts = [k._replace(short="go on") if k.title == "pause" else k for k in shorts]
    if played is not None:  # its own keys come first
        (pauses,) = (key for key in shorts if key.title == "pause")
        others = (key for key in shorts if key is not pauses)
        pauses = pauses._replace(keys=look.keys.titled("fold").keys)
        again = pauses._replace(short="play again")
        own_keys = [pauses] if not ended else [again] if played.span is not None else []
        own_keys += [look.keys.titled("go-to")] if played.span is not None else []
        shorts = [*own_keys, *others]
    if own:
        named = dict(own)
        shorts = [key for key in shorts if key.group != "List" and key.title not in named]
    parts = [short_key(key) for key in shorts if not key.everywhere]
    ends = [short_key(key) for key in shorts if key.everywhere]
    if several_pools:
        parts[:0] = [
            titled_keys(look, "previous-pool next-pool", "pool"),
            short_key(look.keys.titled("overview"), "all pools"),
        ]
    usable = () if denied is None else look.keys.actions
    actions = sorted((key for key in usable if key.short), key=lambda key: key.title != first)
    gray = ("track", "track") if denied else ("key", "dim")
    extra = [short_key(key, key.short, *gray) for key in actions]
    pools = 2 if several_pools else 0
    row = [*ends[:1], *words, *extra, *parts[:pools], *ends[1:-1], *parts[pools:]]
    return key_row(row, ends[-1], width)


def keys_line(
    groups: Sequence[str],
    look: DisplayFormat,
    width: int,
    *,
    typing: bool = False,
    labels: Mapping[str, str] = NOTHING,
) -> Line:
    """Return the keys of a screen over the main one, as many as fit; help and Esc at the end.

    While ``typing``, F1 opens the help, as ``?`` would be typed. ``labels`` are those that differ
    from the usual ones now, by the names of keys in the configuration.
    """
    keys = [key for group in groups for key in look.keys.of(group)]
    helps, back = look.keys.titled("help"), short_key(look.keys.titled("back"), "back")
    turns = any(key.keys[0] == helps.keys[0] for key in keys)
    ends = [back] if turns else [help_key(look, typing=typing), back]
    parts = [short_key(key, labels.get(key.title)) for key in keys if key.short]
    return key_row(parts, joined(ends, "  ", width)[0], width)


def help_key(look: DisplayFormat, *, typing: bool = False) -> Line:
    """Return the key of the help; while ``typing`` its last key, as ``?`` would be typed."""
    key = look.keys.titled("help")
    return short_key(key._replace(keys=key.keys[::-1]) if typing else key)


def key_row(parts: Sequence[Line], end: Line, width: int) -> Line:
    """Return a line of as many parts as fit in full, and the end."""
    lines = joined(parts, "  ", width - width_of(end) - 3)
    first = (*lines[0], Span("  ")) if lines else ()
    return (Span(" "), *first, *end)


def short_key(key: Key, word: str | None = None, key_role: str = "key", role: str = "dim") -> Line:
    """Return a key and its label; a click on either presses the key."""
    word, pressed = key.short if word is None else word, press(key.keys[0])
    return Span(f"{shown(key.keys[0])} ", key_role, pressed), Span(word, role, pressed)


def titled_keys(look: DisplayFormat, titles: str, word: str = "") -> Line:
    """Return the keys of several rows, with the label of the last one or ``word``."""
    *before, last = map(look.keys.titled, titles.split())
    return (*(short_key(key)[0] for key in before), *short_key(last, word or last.short))


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
    if playback.jumps:
        state = "search" if playback.request.events else "moving"
    left: Line = (
        Span(f" {state:<{_STATE}}", "notice" if playback.paused else "dim"),
        Span(f" {speed:<{_SPEED}}"),
        Span(f" {when} ", "bold"),
    )
    share = f"{percent(playback.share, 1):>8} " if playback.span is not None else ""
    # Keys come in pairs, back and forward; the label is that of the second one.
    paired = (key for key in look.keys.of("Replay") if key.title != "go-to")  # footer_line has it
    pairs = zip(*(paired,) * 2, strict=True)
    parts = [(*short_key(back, "")[:1], *short_key(on)) for back, on in pairs]
    room = width - width_of(left) - len(share)
    if playback.span is None:  # cannot be moved about in
        return (*left, Span(share), *parts[-1])
    keys = joined(parts, "  ", room)[0]
    keys = keys if width_of(keys) <= room else ()
    cells = min(_BAR[1], room - width_of(keys))
    drawn = bar(playback.share, cells, look.glyphs, "spark") if cells >= _BAR[0] else ()
    return (*left, *drawn, Span(share), *keys)


def press(key: str) -> str:
    """Return the action that presses a key (textual's name) on a click."""
    return f"press('{key}')"
