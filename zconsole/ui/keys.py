"""The table of all keys, ``share/keys.toml``: screens bind them, help and footers show them."""

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
    """A row of the table: one action and its keys."""

    keys: tuple[str, ...]
    """Names of the keys as in textual, the one shown first."""
    action: str
    """Action of the app, of the screen on top (``screen.``), or in a screen's own group, of
    that."""
    text: str
    """Description for the help screen."""
    group: str
    short: str = ""
    """Label for the footer; empty if it isn't shown there."""
    everywhere: bool = False
    """Whether it works on the screens over the main one as well."""
    over: str = ""
    """Description on the screens over the main one, if it differs there."""
    id: str = ""
    """Name in the configuration, if neither the action nor its parameter makes a good one."""

    @property
    def priority(self) -> bool:
        """Whether it takes precedence over textual's own binding of the key."""
        return self.keys[0] in ("tab", "shift+tab", "ctrl+c", "escape")

    @property
    def name(self) -> str:
        """The action without its parameters."""
        return self.action.partition("(")[0]

    @property
    def title(self) -> str:
        """Name in the configuration: ``replace``, ``fold-in``, ``page-up``."""
        parameter = re.search(r"'(.+)'", self.action)
        word = parameter[1] if parameter else self.name.removeprefix("screen.")
        return self.id or word.replace("_", "-")


FILE = Path(__file__).parents[1] / "share" / "keys.toml"
_TEXTS = tomllib.loads(FILE.read_text("utf-8"))
_EVERY = tuple(Key(**{**row, "keys": tuple(row["keys"])}) for row in _TEXTS["keys"])
GROUPS = ("Move", "List", "Panes", "Pools", "Console", "Replay")
"""Groups of keys that only look."""
MAIN = (*GROUPS, "Actions")
"""Groups of the main screen."""
ANSWER = "Answer"
"""Group of the keys of an input."""
ACTS = "act"
"""Action of the keys that need pools which can be changed, including the log of commands."""
EVERY_GROUP = tuple(dict.fromkeys((*GROUPS, *(key.group for key in _EVERY))))
"""All groups, including those of single screens."""
LEGEND: Mapping[str, Sequence[tuple[str, str, str]]] = {
    title: _TEXTS[title.lower()] for title in ("Colors", "Marks", "Columns", "Graphs")
}
"""Legend by title: role, word and meaning of each entry; a word may name glyphs in braces."""


@dataclass(frozen=True)
class KeyTable:
    """All rows of the table, with the keys they have on this console."""

    rows: tuple[Key, ...]

    @cached_property
    def _titled(self) -> Mapping[str, Key]:
        return {key.title: key for key in self.rows}

    def of(self, group: str) -> tuple[Key, ...]:
        """Return the rows of a group, such as the keys of one screen (``Job``, ``Plan``)."""
        return tuple(key for key in self.rows if key.group == group)

    @property
    def looks(self) -> tuple[Key, ...]:
        """Rows of the main screen that only look, the most used first."""
        return tuple(key for key in self.rows if key.group in GROUPS)

    @property
    def actions(self) -> tuple[Key, ...]:
        """Rows of the main screen that change something."""
        return self.of("Actions")

    def titled(self, title: str) -> Key:
        """Return the row with this name in the configuration."""
        return self._titled[title]

    def shown(self, *titles: str) -> str:
        """Return the first keys of rows as text, to press one after another: ``T, then U``."""
        return ", then ".join([shown(self._titled[title].keys[0]) for title in titles])

    def choices(self, denied: str | None) -> Iterator[tuple[str, str, str]]:
        """Yield title, key and action of each entry of the palette.

        ``denied``: why nothing may be changed, empty if changes are allowed; None omits those keys.
        """
        why = f"; not now: {denied}" if denied else ""
        left_out = ("command_palette", "back", *([ACTS] if denied is None else ()))
        looks = (k for k in self.looks if k.group not in ("Move", "Replay"))
        alone = (k for k in looks if k.name not in left_out)
        for key in (*(() if denied is None else self.actions), *alone):
            more = f"{' '.join(map(shown, key.keys))}{why if key.group == 'Actions' else ''}"
            yield key.text[0].upper() + key.text[1:], more, key.action

    @property
    def keymap(self) -> Mapping[str, str]:
        """Keys that differ from those that ``bindings`` binds, by title, for textual."""
        pairs = zip(self.rows, _EVERY, strict=True)
        return {key.title: ",".join(key.keys) for key, usual in pairs if key.keys != usual.keys}

    def remapped(
        self, wanted: Mapping[str, Sequence[str]]
    ) -> tuple[KeyTable, Sequence[tuple[str, str]]]:
        """Return the table with other keys by title, and the problem of each that can't change."""
        wrong: list[tuple[str, str]] = []
        fresh: dict[str, tuple[str, ...]] = {}
        for title, keys in wanted.items():
            try:
                fresh[self._movable(title).title] = tuple(dict.fromkeys(map(key_name, keys)))
            except ValueError as error:
                wrong.append((title, str(error)))
        # Undoing a remap may cause another clash: repeat until there is none.
        while True:
            rows = tuple(key._replace(keys=fresh.get(key.title, key.keys)) for key in self.rows)
            clashes = list(_clashes(rows, fresh))
            if not clashes:
                return KeyTable(rows), wrong
            wrong += clashes
            for title, _ in clashes:
                del fresh[title]

    def _movable(self, title: str) -> Key:
        """Return the row with this title. Raises ValueError if there is none or it is fixed."""
        key = self._titled.get(title)
        if key is None:
            raise ValueError(f"no such action; there are {', '.join(self._titled)}")
        if key.priority or key.group == ANSWER:
            raise ValueError(f"{' '.join(map(shown, key.keys))} cannot be another key")
        return key


def _clashes(rows: Sequence[Key], fresh: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield remapped titles that share a key with a row of the same screen, and its title."""
    usual = {key.title: set(key.keys) for key in _EVERY}
    for key in rows:
        if key.title not in fresh:
            continue
        for other in rows:
            # Keys that both have by default are no clash.
            shared = (set(key.keys) & set(other.keys)) - (usual[key.title] & usual[other.title])
            # All screens over the main one count as one, so that a key means the same on each.
            mains = [each.group in MAIN for each in (key, other)]
            meet = mains[0] == mains[1] or (key if mains[0] else other).everywhere
            if other is not key and shared and meet:
                yield key.title, f"{shown(min(shared))} is also the key of {other.title}"
                break


SHIPPED = KeyTable(_EVERY)
"""The table without a configuration."""
keys_of = SHIPPED.of
MAIN_ONLY = frozenset(key.name for key in SHIPPED.rows if key.group in MAIN and not key.everywhere)
"""Actions of the main screen only: they are disabled while another screen is over it."""


def bindings(*groups: str) -> list[BindingType]:
    """Return the textual bindings of these groups; their titles are the ids in the keymap.

    Textual's own input binds the keys of an answer.
    """
    from textual.binding import Binding  # keeps the command line free of textual

    return [
        Binding(
            ",".join(key.keys),
            key.action,
            key.text,
            show=False,
            # Left and Right have priority, too: Enter right after them must reach the button they
            # lead to.
            priority=key.priority or key.name == "button",
            id=key.title,
        )
        for group in groups
        for key in keys_of(group)
        if group != ANSWER
    ]


_RENAMED = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
"""Characters that textual does not call by their Unicode names."""


def _character_name(character: str) -> str:
    """Return textual's name for the key of a printable character."""
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
"""Excludes those that a terminal sends for Tab, Enter and Backspace, and textual's own ^Q."""


def key_name(written: str) -> str:
    """Return textual's name of a key written as ``?``, ``F``, ``PgUp``, ``^P`` or ``ctrl+p``.

    Raises ValueError if it is not a key.
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
    """Return the character that a key types; None if it types none."""
    return key if len(key) == 1 else _CHARACTERS.get(key)


def shown(key: str) -> str:
    """Return a key as written for people: ``?``, ``PgUp``, ``^P``."""
    if key.startswith("ctrl+"):
        return f"^{key.removeprefix('ctrl+').upper()}"
    if re.fullmatch(r"f\d+", key):
        return key.upper()
    return str(_TEXTS["shown"].get(key) or _CHARACTERS.get(key, key))
