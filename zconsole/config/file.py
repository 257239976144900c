"""The configuration file: its location, reading it safely, and saving settings to it.

Root has the machine's file only, everybody else one in the XDG directory. Like files of state, it
is read only if nobody but its user and root can change it. A file that is not TOML is ignored as a
whole; otherwise wrong entries are ignored, and all others apply.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from zconsole.config.settings import COMMAND_LINE_ONLY, ENTRIES, keys_of_entry
from zconsole.errors import NotUnderstoodError
from zconsole.system.patient import Patient
from zconsole.system.safe_path import StateError, contents, make_directory, resolved
from zconsole.system.state_dir import open_private, write_private, xdg_directory

SYSTEM = Path("/etc/zconsole/config.toml")
LARGEST = 16384
"""Bytes of a file that is read: many times the size of all settings with comments.

Time is a reason for a limit: tomllib reads a dotted key in the square of its length.
"""
_LONGEST = 200
"""Characters of a problem that are shown; a wrong value may be as long as the file."""
KEYS = "keys"
"""Name of the table with the keys of actions."""


class WrongEntry(NamedTuple):
    """An entry of the file that is ignored, and why."""

    key: str
    """Name of the entry; empty if the whole file is ignored."""
    problem: str


@dataclass(frozen=True, slots=True)
class Config:
    """The contents of a configuration file, with wrong entries set apart."""

    path: Path
    exists: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)
    """Settings in the file, by name, converted as ``ConfigEntry.read`` does."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Keys as written in the file, by the name of their action."""
    wrong: tuple[WrongEntry, ...] = ()

    def value(self, name: str) -> Any:
        """Return a setting, or its default if the file doesn't have it."""
        return self.values.get(name, ENTRIES[name].default)

    def without(self, wrong: WrongEntry) -> Config:
        """Return the configuration without an entry that turned out to be wrong."""
        values = {name: value for name, value in self.values.items() if name != wrong.key}
        keys = {name: each for name, each in self.keys.items() if f"{KEYS}.{name}" != wrong.key}
        return replace(self, values=values, keys=keys, wrong=(*self.wrong, wrong))

    def lines(self) -> tuple[str, ...]:
        """Return a line for each wrong entry: file, key, problem, next step."""
        return tuple(
            f"{self.path}: {entry.key}{': ' if entry.key else ''}{_short(entry.problem)}."
            " Correct it, then run: zconsole config check"
            for entry in self.wrong
        )


def _short(problem: str) -> str:
    return problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]}..."


def config_path() -> Path:
    """Return the path of the current user's configuration, whether or not it exists."""
    if os.geteuid() == 0:
        return SYSTEM
    return xdg_directory("XDG_CONFIG_HOME", ".config", os.environ) / "zconsole/config.toml"


def read_config() -> Config:
    """Read the configuration file.

    Without one, the configuration is empty; if the file can't be read or others may change it, it
    is empty but for a wrong entry. Raises nothing.
    """
    path = config_path()
    try:
        data, owner = Patient().call(partial(read_trusted, path))
    except FileNotFoundError:
        return Config(path)
    except (OSError, StateError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        problem = str(reason).removeprefix(f"{path} ").removeprefix(f"{path}: ")
        return Config(path, exists=True, wrong=(WrongEntry("", problem),))
    import tomllib  # lazy: most machines have no such file

    try:
        table = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"line {line} is not UTF-8"
    except RecursionError:
        problem = "not TOML: nested too deep"
    except ValueError as error:  # not only TOMLDecodeError: int() refuses thousands of digits
        problem = f"not TOML: {error}"
    else:
        return _understood(path, table, owner)
    return Config(path, exists=True, wrong=(WrongEntry("", problem),))


def read_trusted(path: Path) -> tuple[bytes, int]:
    """Return the contents of a file, and the uid of its owner.

    Raises FileNotFoundError, StateError if others could change it or it is larger than ``LARGEST``,
    and OSError.
    """
    handle = open_private(resolved(path))
    owner = os.fstat(handle).st_uid
    return contents(handle, LARGEST), owner


def _understood(path: Path, table: Mapping[str, Any], owner: int) -> Config:
    values: dict[str, Any] = {}
    keys: dict[str, tuple[str, ...]] = {}
    wrong: list[WrongEntry] = []
    for name, value in table.items():
        try:
            if name == KEYS:
                keys = _key_entries(value, wrong)
            else:
                values[name] = _value(name, value, owner)
        except ValueError as error:
            wrong.append(WrongEntry(name, str(error)))
    return Config(path, exists=True, values=values, keys=keys, wrong=tuple(wrong))


def _value(name: str, value: object, owner: int) -> Any:
    if name in COMMAND_LINE_ONLY:
        raise ValueError("only the command line may say this")
    if name not in ENTRIES:
        raise ValueError(f"unknown setting{_suggestion(name)}")
    if name == "hook" and owner != os.geteuid():
        raise ValueError("a hook counts only in a file of the user who runs it")
    return ENTRIES[name].read(value)


def _suggestion(name: str) -> str:
    from difflib import get_close_matches  # lazy: for an error only

    names = (*ENTRIES, KEYS)
    near = get_close_matches(name.replace("_", "-"), names, n=1)
    return f" (did you mean {near[0]}?)" if near else f"; there are {', '.join(names)}"


def _key_entries(value: object, wrong: list[WrongEntry]) -> dict[str, tuple[str, ...]]:
    """Return the valid entries of the table of keys; the others are added to ``wrong``."""
    if not isinstance(value, dict):
        raise ValueError('must be a table: [keys], and below it lines such as replace = "F"')
    found: dict[str, tuple[str, ...]] = {}
    for name, keys in value.items():
        try:
            found[name] = keys_of_entry(keys)
        except ValueError as error:
            wrong.append(WrongEntry(f"{KEYS}.{name}", str(error)))
    return found


# Saving single settings, so that comments, order and unknown entries stay. This needs no library:
# only one-line settings at the top level are saved, and the outcome is parsed again and compared
# before it is written.

_TABLE = re.compile(r"\s*\[")


def save(path: Path, changes: Mapping[str, Any]) -> None:
    """Write settings to the file atomically.

    A new file is readable by its user only; root's, in /etc, by all. Raises StateError if the file
    is not safe to use or can't be written, NotUnderstoodError if it can't be changed without
    damage.
    """
    public = path == SYSTEM
    if not path.parent.exists():
        make_directory(path.parent)
        path.parent.chmod(0o755 if public else 0o700)
    target = resolved(path)
    try:
        data, _ = read_trusted(target)
        mode = stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        data, mode = b"", 0o644 if public else 0o600
    try:
        text = edited(data.decode(), changes).encode()
    except (ValueError, RecursionError) as error:
        raise NotUnderstoodError(f"{path}: {error}") from error
    write_private(target, text, mode)


def edited(text: str, changes: Mapping[str, Any]) -> str:
    """Return TOML with settings added or replaced at its top level; all other lines stay.

    Raises ValueError if the text is not TOML, or a setting is written in a way that can't be
    changed line by line.
    """
    import tomllib  # lazy: as above

    wanted = {**tomllib.loads(text), **changes}
    lines = text.split("\n")
    for name, value in changes.items():
        lines = _with(lines, name, f"{name} = {toml(value)}")
    after = "\n".join(lines)
    if _lists(tomllib.loads(after)) != _lists(wanted):
        raise ValueError(f"cannot be changed line by line; write it yourself: {', '.join(changes)}")
    return after


def toml(value: Any) -> str:
    """Format a value as TOML: text, number, true or false, or a list of text."""
    import json  # lazy: only needed here. TOML's strings are JSON's, except that DEL is escaped

    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lists(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(v) if isinstance(v, tuple) else v for name, v in table.items()}


def _with(lines: Sequence[str], name: str, line: str) -> list[str]:
    """Return the lines with ``line`` in place of a setting, or after the last top-level setting."""
    top = table = next((i for i, each in enumerate(lines) if _TABLE.match(each)), len(lines))
    own = re.compile(rf"""\s*["']?{re.escape(name)}["']?\s*=""")
    for start in range(top):
        if own.match(lines[start]):
            end = _end(lines, start)
            return [*lines[:start], line + _comment("\n".join(lines[start:end])), *lines[end:]]
    while top and (not lines[top - 1].strip() or lines[top - 1].lstrip().startswith("#")):
        top -= 1
    if not top:  # only comments so far: insert below the first paragraph of them
        blank = (i for i, each in enumerate(lines[:table]) if not each.strip())
        top = next(blank, 0)
    return [*lines[:top], line, *lines[top:]]


def _end(lines: Sequence[str], start: int) -> int:
    """Return the index of the line after a setting, which may extend over several lines."""
    # The first end at which the lines are complete TOML.
    ends = range(start + 1, len(lines) + 1)
    return next(
        (end for end in ends if _parsed("\n".join(lines[start:end])) is not None), start + 1
    )


def _comment(entry: str) -> str:
    """Return the comment after a setting, with two blanks before it; empty without one."""
    # A "#" may be part of a string: it begins the comment if what is before it is complete TOML.
    for found in re.finditer("#", entry):
        if _parsed(entry[: found.start()]) is not None:
            return f"  {entry[found.start() :]}"
    return ""


def _parsed(entry: str) -> Mapping[str, Any] | None:
    import tomllib

    try:
        return tomllib.loads(entry)
    except ValueError:
        return None
