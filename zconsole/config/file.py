"""The configuration file: where it is, whether it can be trusted, and what of it counts.

Root reads the machine's only, everybody else one in the XDG directory. Like state it counts only
where nobody but its user and root can change it. Nothing of a file counts that is not TOML; a wrong
entry doesn't keep the others from counting.
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

from zconsole.config.settings import ENTRIES, NEVER, keys_of_entry
from zconsole.errors import NotUnderstoodError
from zconsole.system.patient import Patient
from zconsole.system.safe_path import StateError, contents, make_directory, resolved
from zconsole.system.state_dir import open_private, write_private, xdg_directory

SYSTEM = Path("/etc/zconsole/config.toml")
LARGEST = 16384
"""Bytes: many times what every setting with a comment takes. A dotted key takes Python the square
of its length to read."""
_LONGEST = 200
"""Characters of a problem that are shown; a wrong value may be as long as the file."""
KEYS = "keys"
"""The table of keys."""


class WrongEntry(NamedTuple):
    """Something in the file that does not count."""

    key: str
    """Empty if it is about the whole file."""
    problem: str


@dataclass(frozen=True, slots=True)
class Config:
    """What a file says."""

    path: Path
    exists: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)
    """The settings it has, by name, as the program works with them."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Keys as they are written, by the name of their action."""
    wrong: tuple[WrongEntry, ...] = ()

    def value(self, name: str) -> Any:
        """A setting, or its default."""
        return self.values.get(name, ENTRIES[name].default)

    def without(self, wrong: WrongEntry) -> Config:
        """The same, with another entry that turned out to be wrong."""
        values = {name: value for name, value in self.values.items() if name != wrong.key}
        keys = {name: each for name, each in self.keys.items() if f"{KEYS}.{name}" != wrong.key}
        return replace(self, values=values, keys=keys, wrong=(*self.wrong, wrong))

    def lines(self) -> tuple[str, ...]:
        """One line for each wrong entry: file, key, problem, next step."""
        return tuple(
            f"{self.path}: {entry.key}{': ' if entry.key else ''}{_short(entry.problem)}."
            " Correct it, then run: zconsole config check"
            for entry in self.wrong
        )


def _short(problem: str) -> str:
    return problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]}..."


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the configuration of whoever runs this is, or would be."""
    if os.geteuid() == 0:
        return SYSTEM
    return xdg_directory("XDG_CONFIG_HOME", ".config", environ) / "zconsole/config.toml"


def read_config(environ: Mapping[str, str] = os.environ) -> Config:
    """What the file says; nothing of one that is missing or others may change. Raises nothing."""
    path = config_path(environ)
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
    """The contents, and the number of the user whose file it is.

    Raises FileNotFoundError, StateError where others could change it or it is larger than
    ``LARGEST``, OSError.
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
    if name in NEVER:
        raise ValueError("only the command line may say this")
    if name not in ENTRIES:
        raise ValueError(f"unknown setting{_meant(name)}")
    if name == "hook" and owner != os.geteuid():
        raise ValueError("a hook counts only in a file of the user who runs it")
    return ENTRIES[name].read(value)


def _meant(name: str) -> str:
    from difflib import get_close_matches  # lazy: for an error only

    names = (*ENTRIES, KEYS)
    near = get_close_matches(name.replace("_", "-"), names, n=1)
    return f" (did you mean {near[0]}?)" if near else f"; there are {', '.join(names)}"


def _key_entries(value: object, wrong: list[WrongEntry]) -> dict[str, tuple[str, ...]]:
    """The entries of the table of keys that are keys; ``wrong`` gets the others."""
    if not isinstance(value, dict):
        raise ValueError('must be a table: [keys], and below it lines such as replace = "F"')
    found: dict[str, tuple[str, ...]] = {}
    for name, keys in value.items():
        try:
            found[name] = keys_of_entry(keys)
        except ValueError as error:
            wrong.append(WrongEntry(f"{KEYS}.{name}", str(error)))
    return found


# Saving single settings: comments, order and what the program does not know stay. No library for
# that is needed: what is saved are one-line settings at the top level, and the outcome is read
# again before it is written.

_TABLE = re.compile(r"\s*\[")


def save(path: Path, changes: Mapping[str, Any]) -> None:
    """Write these settings, at once and for good, or not at all.

    A new file is the user's only; root's, in /etc, is for all to read. Raises StateError where the
    file is not safe to use or cannot be written, NotUnderstoodError where it cannot be changed
    without damage.
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
    """The TOML with these settings at its top level; only their lines are others.

    Raises ValueError where it is not TOML, or a setting is written in a way that this does not
    follow.
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
    """A value as TOML has it: text, number, true or false, or a list of text."""
    import json  # lazy: its strings are TOML's, but for DEL

    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lists(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(v) if isinstance(v, tuple) else v for name, v in table.items()}


def _with(lines: Sequence[str], name: str, line: str) -> list[str]:
    """The lines with this one in the place of the setting, or after the last of the top level."""
    top = table = next((i for i, each in enumerate(lines) if _TABLE.match(each)), len(lines))
    own = re.compile(rf"""\s*["']?{re.escape(name)}["']?\s*=""")
    for start in range(top):
        if own.match(lines[start]):
            end = _end(lines, start)
            return [*lines[:start], line + _comment("\n".join(lines[start:end])), *lines[end:]]
    while top and (not lines[top - 1].strip() or lines[top - 1].lstrip().startswith("#")):
        top -= 1
    if not top:  # nothing but comments so far: below them
        blank = (i for i, each in enumerate(lines[:table]) if not each.strip())
        top = next(blank, 0)
    return [*lines[:top], line, *lines[top:]]


def _end(lines: Sequence[str], start: int) -> int:
    """The line behind a setting that may go over several."""
    ends = range(start + 1, len(lines) + 1)
    return next(
        (end for end in ends if _parsed("\n".join(lines[start:end])) is not None), start + 1
    )


def _comment(entry: str) -> str:
    """The comment behind a setting, with two blanks before it."""
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
