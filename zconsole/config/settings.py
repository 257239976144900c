"""Every setting of the configuration: its name, its default and the values it may have.

A setting has the name of the command line's option, without the leading dashes. This module
imports next to nothing, as every command line does: it takes its ranges of numbers from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from zconsole.units import parse_duration

UNITS = ("binary", "decimal", "exact")
"""Units of bytes: as zpool prints them (1K = 1024), powers of 1000, or exact numbers of bytes."""
PANES = ("scan", "devices", "balance", "events")
SORTS = ("tree", "latency", "busy", "read", "write", "errors")
"""Orders of the device list."""
COLUMNS = (
    *("errors", "rates", "latency", "busy", "graphs", "strips"),
    *("notes", "operations", "slow", "queue", "bay"),
)
"""Groups of columns of the device list, other than name and state, that can be shown or hidden."""

_LONGEST = 20
"""Characters of a duration, at most."""
FASTEST = 0.1
"""Shortest interval in seconds: less shows no more, and a sample makes the kernel walk the pool."""
SCRUB_OVERDUE_AFTER = 35 * 86400.0
"""Seconds after which a scrub is overdue: most timers run monthly (zfs-scrub-monthly@.timer)."""


class NumberRange(NamedTuple):
    """A range of numbers, and its description in error messages."""

    what: str
    fits: Callable[[float], bool]
    percent: bool = False
    """Whether ``25%`` is another way to write 0.25."""

    def read(self, value: object) -> float:
        """Convert a number, or a word of the command line. Raises ValueError if out of range."""
        number = self._number(value)
        if not self.fits(number):
            raise ValueError(f"must be {self.what}, not {value!r}")
        return number

    def read_toml(self, value: object) -> float:
        """Convert a value of the file: a number, or a percentage as text. Raises ValueError."""
        if isinstance(value, str) and not (self.percent and value.endswith("%")):
            raise ValueError(f"must be {self.what}, not {value!r}")
        return self.read(value)

    def _number(self, value: object) -> float:
        if isinstance(value, str):
            digits = value.removesuffix("%") if self.percent else value
            try:
                return float(digits) / (1 if digits == value else 100)
            except ValueError:
                return math.nan  # is in no range, so that the caller refuses it
        whole_or_float = isinstance(value, int | float) and not isinstance(value, bool)
        try:
            return float(value) if whole_or_float else math.nan  # type: ignore[arg-type]
        except OverflowError:
            return math.nan


INTERVAL = NumberRange(f"at least {FASTEST:g} seconds", lambda n: FASTEST <= n < math.inf)
POSITIVE = NumberRange("a number above 0", lambda n: 0 < n < math.inf)
SLIP = NumberRange("a share above 0: 0.25 or 25%", lambda n: 0 < n <= 10, percent=True)
FLOOR = NumberRange("a share of a pool: 0.05 or 5%", lambda n: 0 <= n < 1, percent=True)


def _duration(value: object) -> float:
    """Return seconds, given as a number or as text such as ``35d``. Raises ValueError."""
    if isinstance(value, str):
        seconds = parse_duration(value) if value.isascii() and len(value) < _LONGEST else None
    else:
        seconds = POSITIVE.read_toml(value)
    if not seconds:
        raise ValueError(f'must be a duration such as "35d", or seconds above 0, not {value!r}')
    return seconds


class ConfigEntry(NamedTuple):
    """A setting: its default, and how its value in the file is read."""

    default: Any
    """None if the program chooses a value at run time."""
    read: Callable[[object], Any]
    """Converts the value in the file to the one that the program uses; raises ValueError."""
    look: bool = False
    """Whether it only changes the look of the console, and so applies to demos and replays, too."""


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {value!r}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f'must be text such as "name", not {value!r}')
    return value


def _theme(value: object) -> str:
    name = _text(value)
    if "/" in name and not name.startswith("/"):
        # A relative path would be another file in every directory that zconsole is started in.
        raise ValueError(f"must be the name of a theme or a path that begins with /, not {name!r}")
    return name


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value) or not value:
        raise ValueError(f'must be a list such as ["a", "b"], not {value!r}')
    return tuple(dict.fromkeys(value))


def _layouts(value: object) -> tuple[str, ...]:
    """Return layouts of chassis as written, once they are checked. Raises ValueError."""
    from zconsole.pool.chassis import parse_layout  # lazy: most machines have none

    found = _texts(value)
    for text in found:
        parse_layout(text)
    return found


def _one_of(names: Sequence[str]) -> Callable[[object], str]:
    def _read(value: object) -> str:
        if value not in names:
            raise ValueError(f"must be one of {', '.join(names)}, not {value!r}")
        return str(value)

    return _read


def _some_of(names: Sequence[str]) -> Callable[[object], tuple[str, ...]]:
    def _read(value: object) -> tuple[str, ...]:
        return tuple(map(_one_of(names), _texts(value)))

    return _read


def keys_of_entry(value: object) -> tuple[str, ...]:
    """Return the keys of one action, given as ``"F"`` or a list. Raises ValueError."""
    if isinstance(value, str) and value:
        return (value,)
    try:
        return _texts(value)
    except ValueError:
        raise ValueError(f'must be a key such as "F", or a list of keys, not {value!r}') from None


ENTRIES: Mapping[str, ConfigEntry] = {
    "interval": ConfigEntry(1.0, INTERVAL.read_toml),
    "theme": ConfigEntry(None, _theme, look=True),
    "theme-16": ConfigEntry(None, _theme, look=True),
    "units": ConfigEntry(UNITS[0], _one_of(UNITS), look=True),
    "panes": ConfigEntry(PANES, _some_of(PANES), look=True),
    "columns": ConfigEntry(COLUMNS, _some_of(COLUMNS), look=True),
    "sort": ConfigEntry(SORTS[0], _one_of(SORTS), look=True),
    "chassis": ConfigEntry((), _layouts, look=True),
    "ascii": ConfigEntry(None, _switch, look=True),
    "no-mouse": ConfigEntry(False, _switch, look=True),
    "read-only": ConfigEntry(False, _switch),
    "hosts": ConfigEntry(None, _texts),
    "stalled-after": ConfigEntry(600.0, POSITIVE.read_toml),
    "scrub-overdue-after": ConfigEntry(SCRUB_OVERDUE_AFTER, _duration),
    "slip": ConfigEntry(0.25, SLIP.read_toml),
    "free-floor": ConfigEntry(0.05, FLOOR.read_toml),
    "hook": ConfigEntry(None, _text),
    "bell": ConfigEntry(False, _switch),
    "notify": ConfigEntry(False, _switch),
}
"""All settings, in the order in which they are shown. The file may also have a table ``[keys]``."""

COMMAND_LINE_ONLY = frozenset({"yes", "accept-races", "allow-non-zfs", "journal", "detach"})
"""Options that accept a risk or have effects: allowed on the command line only."""
