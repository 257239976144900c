"""The lines of a recording as raw forms; without an event loop, which reports need none of."""

from __future__ import annotations

from typing import Any, cast

from zconsole.system.records import parse_json
from zconsole.zfs.decode.values import POOL_LINE, is_time
from zconsole.zfs.raw import FORM_TYPES, FORMS, Raw
from zconsole.zfs.sources.open_text import LONGEST_LINE

MOST_MEMORY = 128 * 2**20
"""Bytes that the values of a JSON document may take. Three of them are in memory at a time: the
one that is shown, the one of the next round and the one that is being read."""
MOST_POOLS = 1000
"""Pools of a machine or a recording; what names more is neither. Something is kept of each."""
_CONTAINER_BYTES = 200
_VALUE_BYTES = 48
"""What Python takes for an array or object, which has its own room to grow, and for a value."""

_OBJECTS = frozenset({"names", "message", "host", "devices", "disks", "history"})
"""Keys beyond the format's own whose values are objects."""
_OURS = ("gap", "place")
"""Keys that say what became of a line here, never what another recorder wrote."""


class NotRawError(ValueError):
    """A line is not a raw form; the text says why. ``t`` and ``pool`` are what it has of these."""

    def __init__(self, why: str, t: float | None = None, pool: str | None = None) -> None:
        super().__init__(why)
        self.t = t
        self.pool = pool


def memory_of(text: str) -> int:
    """Bytes that the values of a JSON text take at most, by what separates them."""
    containers = text.count("[") + text.count("{")
    return _CONTAINER_BYTES * containers + _VALUE_BYTES * text.count(",")


def raw_of(line: str | None) -> Raw:
    """A line of a recording as a raw form. Raises NotRawError.

    None is a line that is too long (``open_text.lines``).
    """
    if line is None:
        raise NotRawError(f"longer than {LONGEST_LINE >> 20} MiB")
    if memory_of(line) > MOST_MEMORY:
        raise NotRawError("too many values")
    try:
        found: Any = parse_json(line)
    except ValueError:
        raise NotRawError("not JSON") from None
    if not isinstance(found, dict):
        raise NotRawError("not a JSON object")
    found = {key: value for key, value in found.items() if _is_ours(key, value)}
    if not is_time(found.get("t")):
        raise NotRawError("no time t", pool=found.get("pool"))
    if not any(isinstance(found.get(form), kind) for form, kind in FORM_TYPES.items()):
        raise NotRawError("none of " + ", ".join(FORMS), found["t"], found.get("pool"))
    if any(not isinstance(found.get(form, kind()), kind) for form, kind in FORM_TYPES.items()):
        raise NotRawError("a form of another type", found["t"], found.get("pool"))
    return cast("Raw", found)


def is_raw(line: str | None) -> bool:
    """Whether it is a line of a recording."""
    if line is None or '"t"' not in line or not line.lstrip().startswith("{"):
        return False
    try:
        raw_of(line)
    except NotRawError:
        return False
    return True


def pool_name(raw: Raw) -> str:
    """The pool a raw form is about; empty when it does not say or has several."""
    if "pool" in raw:
        return str(raw["pool"])
    if "libzfs" in raw:
        return str(raw["libzfs"].get("name", ""))
    if "status" in raw:
        pools = raw["status"].get("pools")
        names = list(pools) if isinstance(pools, dict) else []
    else:
        names = POOL_LINE.findall(raw.get("text", ""))
    return str(names[0]) if len(names) == 1 else ""


def _is_ours(key: str, value: object) -> bool:
    """Whether a key means what zconsole means by it.

    Those it added to the format another recorder may use for something else: its host's name.
    """
    if value is None or key in _OURS:
        return False
    if key in ("events", "sitting_out", "autosit", "enclosures"):
        rows: list[Any] = value if isinstance(value, list) else [None]
        return all(isinstance(row, dict) for row in rows) and (
            key != "events" or all(is_time(event.get("t")) for event in rows)
        )
    if key in ("clock", "began"):
        return is_time(value)
    if key == "pool":
        return isinstance(value, str)
    if key == "tunables":
        return isinstance(value, dict) and all(isinstance(n, int) for n in value.values())
    return key not in _OBJECTS or isinstance(value, dict)


class Gaps:
    """Counts the samples of a recording that are missing; remembers what was wrong first."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        """Where the first one is, and why it could not be read."""

    def add(self, why: str) -> None:
        """Count one; ``why`` says where it is and what is wrong."""
        self.first = self.first or why
        self.count += 1

    @property
    def words(self) -> str:
        """All of them in one line; empty when nothing is missing."""
        if not self.count:
            return ""
        many = "1 gap" if self.count == 1 else f"the first of {self.count} gaps"
        return f"{self.first} ({many} in the recording)"
