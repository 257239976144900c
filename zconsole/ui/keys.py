"""The one table of keys, ``share/keys.toml``: screens bind it, help and footers show it."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
    over: str = ""
    """What it does on those, where that is not the same as on the main one."""
    id: str = ""
    """What the configuration calls it, where neither its action nor the parameter of that will do:
    ``name``."""

    @property
    def priority(self) -> bool:
        """Whether it goes before what textual itself binds the key to."""
        return self.keys[0] in ("tab", "shift+tab", "ctrl+c", "escape")

    @property
    def name(self) -> str:
        """The action without its parameters."""
        return self.action.partition("(")[0]

    @property
    def title(self) -> str:
        """What the configuration calls it: ``replace``, ``fold-in``, ``page-up``."""
        parameter = re.search(r"'(.+)'", self.action)
        word = parameter[1] if parameter else self.name.removeprefix("screen.")
        return self.id or word.replace("_", "-")


FILE = Path(__file__).parents[1] / "share" / "keys.toml"
_TEXTS = tomllib.loads(FILE.read_text("utf-8"))
_EVERY = tuple(Key(**{**row, "keys": tuple(row["keys"])}) for row in _TEXTS["keys"])
GROUPS = ("Move", "List", "Panes", "Pools", "Console", "Replay")
"""Of keys that only look."""
MAIN = (*GROUPS, "Actions")
"""Of the main screen."""
ACTS = "act"
"""The action of all that needs pools which can be changed, the log of commands among them."""
EVERY_GROUP = tuple(dict.fromkeys((*GROUPS, *(key.group for key in _EVERY))))
"""Those of single screens as well."""
LEGEND: Mapping[str, Sequence[tuple[str, str, str]]] = {
    title: _TEXTS[title.lower()] for title in ("Colors", "Marks", "Columns", "Graphs")
}
"""By title: role, word and meaning; a word may name glyphs in braces."""


@dataclass(frozen=True)
class KeyTable:
    """Every row of the table, with the keys it has on this console."""

    rows: tuple[Key, ...]

    @cached_property
    def _titled(self) -> Mapping[str, Key]:
        return {key.title: key for key in self.rows}

    def of(self, group: str) -> tuple[Key, ...]:
        """The keys of a group, as of one screen (``Job``, ``Tunables``, ``Plan``)."""
        return tuple(key for key in self.rows if key.group == group)

    @property
    def looks(self) -> tuple[Key, ...]:
        """The keys of the main screen that only look, the most used first."""
        return tuple(key for key in self.rows if key.group in GROUPS)

    @property
    def actions(self) -> tuple[Key, ...]:
        """The keys of the main screen that change something."""
        return self.of("Actions")

    def titled(self, title: str) -> Key:
        """The row that the configuration calls so."""
        return self._titled[title]

    def shown(self, title: str) -> str:
        """The key of a row, as it is written for people."""
        return shown(self.titled(title).keys[0])

    @property
    def speed_hint(self) -> str:
        """Which keys make a demo slower or faster."""
        return f"{self.shown('slower')} {self.shown('faster')} demo speed"

    def way(self, *titles: str) -> str:
        """The keys to press one after another: ``T, then U``."""
        return ", then ".join(map(self.shown, titles))

    def choices(self, denied: str | None) -> Iterator[tuple[str, str, str]]:
        """Title, key and action of what the palette offers: keys that stand alone.

        ``denied``: why nothing may be changed, empty when it may; None leaves those keys out.
        """
        why = f"; not now: {denied}" if denied else ""
        rest = (k for k in self.looks if k.group not in ("Move", "Replay"))
        alone = (k for k in rest if k.action not in ("command_palette", "back"))
        alone = (k for k in alone if denied is not None or k.name != ACTS)
        for key in (*(() if denied is None else self.actions), *alone):
            more = f"{' '.join(map(shown, key.keys))}{why if key.group == 'Actions' else ''}"
            yield key.text[0].upper() + key.text[1:], more, key.action

    @property
    def keymap(self) -> Mapping[str, str]:
        """What textual is to bind otherwise than ``bindings`` does, by title."""
        pairs = zip(self.rows, _EVERY, strict=True)
        return {key.title: ",".join(key.keys) for key, usual in pairs if key.keys != usual.keys}

    def remapped(
        self, wanted: Mapping[str, Sequence[str]]
    ) -> tuple[KeyTable, Sequence[tuple[str, str]]]:
        """The table with other keys, by title, and which of them cannot be: title and problem."""
        wrong: list[tuple[str, str]] = []
        fresh: dict[str, tuple[str, ...]] = {}
        for title, keys in wanted.items():
            try:
                fresh[self._movable(title).title] = tuple(dict.fromkeys(map(key_name, keys)))
            except ValueError as error:
                wrong.append((title, str(error)))
        while True:
            rows = tuple(key._replace(keys=fresh.get(key.title, key.keys)) for key in self.rows)
            clashes = list(_clashes(rows, fresh))
            if not clashes:
                return KeyTable(rows), wrong
            wrong += clashes
            for title, _ in clashes:
                del fresh[title]

    def _movable(self, title: str) -> Key:
        """The row of that title. Raises ValueError where there is none or its keys must stay."""
        rows = {key.title: key for key in self.rows}
        if title not in rows:
            raise ValueError(f"no such action; there are {', '.join(rows)}")
        if rows[title].priority or rows[title].group == "Answer":
            raise ValueError(f"{' '.join(map(shown, rows[title].keys))} cannot be another key")
        return rows[title]


def _clashes(rows: Sequence[Key], fresh: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Remapped titles that share a key with another row where both work, and with which."""
    usual = {key.title: set(key.keys) for key in _EVERY}
    for key in rows:
        if key.title not in fresh:
            continue
        for other in rows:
            shared = (set(key.keys) & set(other.keys)) - (usual[key.title] & usual[other.title])
            # The screens over the main one count as one.
            mains = [each.group in MAIN for each in (key, other)]
            meet = mains[0] == mains[1] or (key if mains[0] else other).everywhere
            if other is not key and shared and meet:
                yield key.title, f"{shown(min(shared))} is also the key of {other.title}"
                break


SHIPPED = KeyTable(_EVERY)
"""The table as it is without a configuration."""
keys_of = SHIPPED.of
MAIN_ONLY = frozenset(key.name for key in SHIPPED.rows if key.group in MAIN and not key.everywhere)
"""Actions that belong to the main screen: while another is over it, they must do nothing."""


def bindings(*groups: str) -> list[BindingType]:
    """What binds the keys of these groups, by their titles for the keymap of a console."""
    from textual.binding import Binding  # only here: what waits for a terminal imports none of it

    return [
        Binding(
            ",".join(key.keys),
            key.action,
            key.text,
            show=False,
            # Left and Right, too: Enter right behind them is for the button they lead to.
            priority=key.priority or key.name == "button",
            id=key.title,
        )
        for group in groups
        for key in keys_of(group)
    ]


_RENAMED = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
"""What textual calls some characters in place of their names in Unicode."""


def _character_name(character: str) -> str:
    """A printable character as textual names its key."""
    if character.isalnum():
        return character
    name = unicodedata.name(character).lower().replace("-", "_").replace(" ", "_")
    return _RENAMED.get(name, name)


_CHARACTERS = {_character_name(chr(code)): chr(code) for code in range(33, 127)}
_NAMES = {
    **{name: name for name in _TEXTS["shown"]},
    **{str(text).lower(): name for name, text in _TEXTS["shown"].items()},
    **{name: name for name in ("insert", "delete", "backspace", "space")},
    **{f"f{number}": f"f{number}" for number in range(1, 13)},
}
_CONTROL = re.compile(r"(?:\^|ctrl[+-])([a-gk-lnopr-z])")
"""Without those that a terminal sends for Tab, Enter and Backspace, and textual's own ^Q."""


def key_name(written: str) -> str:
    """A key as textual names it, as ``?``, ``F``, ``PgUp``, ``^P`` or ``ctrl+p``.

    Raises ValueError for what is not a key.
    """
    if len(written) == 1 and (written.isalnum() or written in _CHARACTERS.values()):
        return _character_name(written)
    low = written.lower()
    if control := _CONTROL.fullmatch(low):
        return f"ctrl+{control[1]}"
    if low not in _NAMES and low not in _CHARACTERS:
        raise ValueError(f"{written!r} is not a key; write it as in the help: F, ?, PgUp, ^P, F5")
    return str(_NAMES.get(low, low))


def character_of(key: str) -> str | None:
    """What a key types, as textual names it; None for one that types nothing."""
    return key if len(key) == 1 else _CHARACTERS.get(key)


def shown(key: str) -> str:
    """A key as it is written for people: ``?``, ``PgUp``, ``^P``."""
    if key.startswith("ctrl+"):
        return f"^{key.removeprefix('ctrl+').upper()}"
    if re.fullmatch(r"f\d+", key):
        return key.upper()
    return str(_TEXTS["shown"].get(key) or _CHARACTERS.get(key, key))
