"""The configuration file: where it is, whether it can be trusted, and what of it counts.

Root reads the machine's only, everybody else one in the XDG directory. Like state it counts only
where nobody but its user and root can change it. A wrong entry doesn't keep the others from
counting.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from zconsole.config.settings import ENTRIES, NEVER, keys_of_entry
from zconsole.system.patient import Patient
from zconsole.system.safe_path import StateError, contents, resolved
from zconsole.system.state_dir import home, open_private

SYSTEM = Path("/etc/zconsole/config.toml")
LARGEST = 16384
"""Bytes: many times what every setting with a comment takes. A dotted key takes Python the square
of its length to read."""
_LONGEST = 200
"""Characters of a problem that are shown; a wrong value may be as long as the file."""
_BROKEN_LINES = 3
"""Lines that are not TOML and are left out; with more, nothing of the file counts."""
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
    base = environ.get("XDG_CONFIG_HOME", "")
    # Of a relative one every directory would have its own; the specification has it ignored.
    return (Path(base) if base.startswith("/") else home() / ".config") / "zconsole/config.toml"


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
    table, broken = parsed(data)
    return _understood(Config(path, exists=True, wrong=broken), table, owner)


def read_trusted(path: Path) -> tuple[bytes, int]:
    """The contents, and the number of the user whose file it is.

    Raises FileNotFoundError, StateError where others could change it or it is larger than
    ``LARGEST``, OSError.
    """
    handle = open_private(resolved(path))
    owner = os.fstat(handle).st_uid
    return contents(handle, LARGEST), owner


def parsed(data: bytes) -> tuple[Mapping[str, Any], tuple[WrongEntry, ...]]:
    """The TOML without the lines that are not, and what is wrong with those."""
    import tomllib  # lazy: most machines have no such file

    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return {}, (WrongEntry("", f"line {line} is not UTF-8"),)
    wrong: list[WrongEntry] = []
    while len(wrong) <= _BROKEN_LINES:
        try:
            return tomllib.loads("\n".join(lines)), tuple(wrong)
        except RecursionError:
            return {}, (WrongEntry("", "not TOML: nested too deep"),)
        except ValueError as error:  # not only TOMLDecodeError: int() refuses thousands of digits
            wrong.append(WrongEntry("", f"not TOML: {error}"))
            lines = _without_bad_line(lines, error)
    return {}, (wrong[0],)


def _without_bad_line(lines: Sequence[str], error: ValueError) -> list[str]:
    """The lines with the one blank that tomllib stumbles over.

    That is the line it names or, as after a bracket that is not closed, the one before that:
    whichever leaves more that can be read.
    """
    number = min(_line_of(error), len(lines))
    named = [n for n in range(number) if lines[n].strip()][-2:]
    tries = [[*lines[:n], "", *lines[n + 1 :]] for n in reversed(named)]
    return max(tries, key=_read_to, default=[])


def _read_to(lines: Sequence[str]) -> int:
    """The number of the line up to which these are TOML."""
    import tomllib

    try:
        tomllib.loads("\n".join(lines))
    except ValueError as error:
        return _line_of(error)
    return sys.maxsize


def _line_of(error: ValueError) -> int:
    """The number of the line that an error of tomllib names; of the end, one behind all others."""
    _, found, rest = str(error).rpartition("(at line ")
    return int(rest.partition(",")[0]) if found else sys.maxsize - 1


def _understood(config: Config, table: Mapping[str, Any], owner: int) -> Config:
    values: dict[str, Any] = {}
    keys: dict[str, tuple[str, ...]] = {}
    wrong = list(config.wrong)
    for name, value in table.items():
        try:
            if name == KEYS:
                keys = _key_entries(value, wrong)
            else:
                values[name] = _value(name, value, owner)
        except ValueError as error:
            wrong.append(WrongEntry(name, str(error)))
    return replace(config, values=values, keys=keys, wrong=tuple(wrong))


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
