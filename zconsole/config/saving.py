"""Saves single settings to the configuration, and leaves the rest of the file as it is.

Comments, order and what the program does not know stay. No library for that is needed: what is
saved are one-line settings at the top level, and the outcome is read again before it is written.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zconsole.config.file import SYSTEM, read_trusted
from zconsole.errors import NotUnderstoodError
from zconsole.system.safe_path import make_directory, resolved
from zconsole.system.state_dir import write_private

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
    import tomllib  # lazy: as in config.file

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
    return next((end for end in ends if _value("\n".join(lines[start:end])) is not None), start + 1)


def _comment(entry: str) -> str:
    """The comment behind a setting, with two blanks before it."""
    for found in re.finditer("#", entry):
        if _value(entry[: found.start()]) is not None:
            return f"  {entry[found.start() :]}"
    return ""


def _value(entry: str) -> Mapping[str, Any] | None:
    import tomllib

    try:
        return tomllib.loads(entry)
    except ValueError:
        return None
