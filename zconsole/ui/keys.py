"""The keys that look and those that act: the console binds them, ``?`` and the footer show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Key(NamedTuple):
    """Keys that do one thing."""

    keys: tuple[str, ...]
    """As textual names them, the one shown first."""
    action: str
    """Of the console, or ``screen.`` where screens differ; one that has none of it ignores it."""
    text: str
    """What it does, for the help screen."""
    group: str
    short: str = ""
    """Word for the footer; empty to leave it out there."""

    @property
    def priority(self) -> bool:
        """Whether it goes before what textual itself binds the key to."""
        return self.keys[0] in ("tab", "shift+tab", "ctrl+c")


class Offer(NamedTuple):
    """A key for something that changes the pool: shown grey, with the reason, when it cannot."""

    key: Key
    enabled: bool = True
    reason: str = ""


TABLE = (
    Key(("question_mark", "f1"), "help", "this help", "Console", "help"),
    Key(
        ("slash",),
        "screen.filter",
        "show only what matches: name, state, path, note",
        "List",
        "filter",
    ),
    Key(("enter",), "screen.open", "open or close the detail of a row", "List", "detail"),
    Key(("s",), "screen.sort", "sort: tree, latency, busy, read, write, errors", "List", "sort"),
    Key(("p",), "pause", "pause or resume the display; sampling goes on", "Console", "pause"),
    Key(("space",), "screen.fold", "fold or unfold a row", "List"),
    Key(("left", "h"), "screen.fold_in", "fold a row, or go to the one above it", "List"),
    Key(("right", "l"), "screen.fold_out", "unfold a row", "List"),
    Key(("up", "k"), "move(-1)", "up", "Move"),
    Key(("down", "j"), "move(1)", "down", "Move"),
    Key(("pageup", "ctrl+b"), "page(-1)", "a page up", "Move"),
    Key(("pagedown", "ctrl+f"), "page(1)", "a page down", "Move"),
    Key(("g", "home"), "edge(-1)", "to the top", "Move"),
    Key(("G", "end"), "edge(1)", "to the end", "Move"),
    Key(("tab",), "next_pane(1)", "next pane", "Move"),
    Key(("shift+tab",), "next_pane(-1)", "pane before", "Move"),
    Key(("1",), "screen.pane('scan')", "show or hide the scan", "Panes"),
    Key(("2",), "screen.pane('devices')", "show or hide the devices", "Panes"),
    Key(("3",), "screen.pane('balance')", "show or hide the balance", "Panes"),
    Key(("4",), "screen.pane('events')", "show or hide the events and messages", "Panes"),
    Key(("z",), "screen.zoom", "give the pane in focus the whole screen", "Panes", "zoom"),
    Key(("right_square_bracket",), "pool(1)", "next pool", "Pools"),
    Key(("left_square_bracket",), "pool(-1)", "pool before", "Pools"),
    Key(("o",), "overview", "list of all pools; Enter opens one", "Pools"),
    Key(("w",), "what_if", "what if: vdevs added, larger disks, a resilver's time", "Pools"),
    Key(("u",), "units", "units: binary as zpool, decimal, exact", "Console"),
    Key(("plus", "equals_sign"), "interval(1)", "sample less often", "Console"),
    Key(("minus",), "interval(-1)", "sample more often", "Console"),
    Key(("t",), "themes", "choose a theme", "Console", "theme"),
    Key(("ctrl+p",), "command_palette", "command palette", "Console"),
    Key(("escape",), "back", "one step back: close, unzoom, clear the filter", "Console"),
    Key(("q",), "leave", "quit (closes the help first)", "Console", "quit"),
    Key(("ctrl+c",), "interrupt", "quit at once", "Console"),
    Key(("ctrl+z",), "suspend_process", "stop and return to the shell; fg comes back", "Console"),
)

ACTIONS = (
    Key(
        ("S",),
        "act('scans')",
        "start, pause, resume or stop a scrub; restart a resilver",
        "Actions",
        "Scrub",
    ),
    Key(("R",), "act('replace')", "replace the device at the cursor", "Actions", "Replace"),
    Key(
        ("T",),
        "act('tunables')",
        "tunables of scans and rebuilds: presets, set, put back",
        "Actions",
        "Tunables",
    ),
    Key(
        ("B",),
        "act('rebalance')",
        "rebalance: its jobs; choose directories, plan, run, watch, steer",
        "Actions",
        "Rebalance",
    ),
    Key(
        ("A",),
        "act('actions')",
        "everything that can be done with the row at the cursor",
        "Actions",
        "Actions",
    ),
)
"""The keys that change something: uppercase, apart from those that only look."""

GROUPS = ("Move", "List", "Panes", "Pools", "Console")

_SHOWN = {
    "question_mark": "?",
    "slash": "/",
    "enter": "Enter",
    "space": "Space",
    "escape": "Esc",
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "tab": "Tab",
    "shift+tab": "Shift-Tab",
    "f1": "F1",
}


def shown(key: str) -> str:
    """A key as it is written for people: ``?``, ``PgUp``, ``^P``."""
    if key.startswith("ctrl+"):
        return f"^{key.removeprefix('ctrl+').upper()}"
    return _SHOWN.get(key, key)


def offers(denied: str) -> tuple[Offer, ...]:
    """The keys for the footer and the help; grey with the reason when nothing may be changed."""
    return tuple(Offer(key, not denied, denied) for key in ACTIONS)


def choices(offers: Iterable[Offer]) -> Iterator[tuple[str, str, str]]:
    """Title, more about it and action of what the palette offers: keys that stand alone."""
    alone = (k for k in TABLE if k.group != "Move" and k.action not in ("command_palette", "back"))
    for key, enabled, reason in (*offers, *map(Offer, alone)):
        title, mark, rest = key.text.partition("; ")
        why = "" if enabled else f"; not now: {reason}"
        yield title.capitalize(), f"{' '.join(map(shown, key.keys))}{mark}{rest}{why}", key.action


def footer_keys(table: Iterable[Key], several_pools: bool) -> tuple[tuple[str, str], ...]:
    """Key and word for the footer, the most used first."""
    pairs = [(shown(key.keys[0]), key.short) for key in table if key.short]
    if several_pools:
        pairs.insert(1, ("[ ]", "pool"))
        pairs.insert(2, ("o", "all pools"))
    return tuple(pairs)
