"""The one table of keys, ``share/keys.toml``: screens bind it, help and footers show it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from textual.binding import BindingType


class Key(NamedTuple):
    """Keys that do one thing."""

    keys: tuple[str, ...]
    """As textual names them, the one shown first."""
    action: str
    """Of the console, or ``screen.`` where screens differ; in a screen's own group, of it."""
    text: str
    """What it does, for the help screen."""
    group: str
    short: str = ""
    """Word for the footer; empty to leave it out there."""
    everywhere: bool = False
    """Whether it works on the screens over the main one as well."""

    @property
    def priority(self) -> bool:
        """Whether it goes before what textual itself binds the key to."""
        return self.keys[0] in ("tab", "shift+tab", "ctrl+c", "escape")

    @property
    def name(self) -> str:
        """The action without its parameters."""
        return self.action.partition("(")[0]


FILE = Path(__file__).parents[1] / "share" / "keys.toml"
_TEXTS = tomllib.loads(FILE.read_text("utf-8"))
_EVERY = tuple(Key(**{**row, "keys": tuple(row["keys"])}) for row in _TEXTS["keys"])
GROUPS = ("Move", "List", "Panes", "Pools", "Console", "Replay")
EVERY_GROUP = tuple(dict.fromkeys((*GROUPS, *(key.group for key in _EVERY))))
"""Those of single screens as well."""
TABLE = tuple(key for key in _EVERY if key.group in GROUPS)
"""The keys that only look, the most used first."""
ACTIONS = tuple(key for key in _EVERY if key.group == "Actions")
"""The keys that change something."""
LEGEND: Mapping[str, Sequence[tuple[str, str, str]]] = {
    title: _TEXTS[title.lower()] for title in ("Colors", "Marks", "Columns", "Graphs")
}
"""By title: role, word and meaning; a word may name glyphs in braces."""


def keys_of(group: str) -> tuple[Key, ...]:
    """The keys of a group, as of one screen (``Job``, ``Tunables``, ``Plan``)."""
    return tuple(key for key in _EVERY if key.group == group)


MAIN_ONLY = frozenset(key.name for key in (*TABLE, *ACTIONS) if not key.everywhere)
"""Actions that belong to the main screen: while another is over it, they must do nothing."""


def bindings(*groups: str) -> list[BindingType]:
    """What binds the keys of these groups."""
    from textual.binding import Binding  # only here: what waits for a terminal imports none of it

    return [
        Binding(",".join(key.keys), key.action, key.text, show=False, priority=key.priority)
        for group in groups
        for key in keys_of(group)
    ]


def shown(key: str) -> str:
    """A key as it is written for people: ``?``, ``PgUp``, ``^P``."""
    if key.startswith("ctrl+"):
        return f"^{key.removeprefix('ctrl+').upper()}"
    return str(_TEXTS["shown"].get(key, key))


def choices(denied: str | None) -> Iterator[tuple[str, str, str]]:
    """Title, key and action of what the palette offers: keys that stand alone.

    ``denied``: why nothing may be changed, empty when it may; None leaves those keys out.
    """
    why = f"; not now: {denied}" if denied else ""
    rest = (k for k in TABLE if k.group not in ("Move", "Replay"))
    alone = (k for k in rest if k.action not in ("command_palette", "back"))
    for key in (*(() if denied is None else ACTIONS), *alone):
        more = f"{' '.join(map(shown, key.keys))}{why if key in ACTIONS else ''}"
        yield key.text[0].upper() + key.text[1:], more, key.action
