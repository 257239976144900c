"""JSON as lines that people read: an outline of an object, and what changed from another one.

Lists of objects with names are shown by these names. Keys with plain values share a line:

    state: "DEGRADED"
    0: read write cksum; null: read_rate write_rate
    children:
     raidz2-0:
      state: "ONLINE"

Floats are rounded: in their last digits, C libraries and versions of Python differ (since 3.12,
``sum`` is exact).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.lock.case import digest

PLAIN = ("null", "false", "true", "0", '""', "[]", "{}")
MOST = 30
"""Objects below one key that are all shown; of more, the first, the middle and the last."""
REPEATED = 60
"""Characters of what is not shown a second time."""
GONE = "gone"
DIGITS = 6
_SIMPLE = re.compile(r"[\w./\[\]-]+")

Named = dict[str, Any]
"""An object in which lists of objects became objects by name."""


def parsed(line: str, simulated: bool = False) -> Any:
    """Return the JSON of a line, floats rounded. Raises ValueError where it is none.

    ``simulated``: its integers are floats cut off, so that large ones are rounded, too.
    """
    if simulated:
        return json.loads(line, parse_float=_simulated, parse_int=_rounded_integer)
    return json.loads(line, parse_float=_rounded)


def _rounded_integer(text: str) -> int:
    return round(int(text), min(0, DIGITS - len(text.lstrip("-"))))


def _rounded(text: str) -> float:
    number = float(text)
    return round(number, 3) if abs(number) >= 1000 else float(f"{number:.{DIGITS}g}")


def _simulated(text: str) -> float:
    """Round what is no time, too: a rate of 1e9 has seven exact digits behind the point."""
    number = float(text)
    return _rounded(text) if 1e9 <= number < 2e9 else float(f"{number:.{DIGITS}g}")


def named(value: Any) -> Any:
    """Return a value in which lists of objects are objects by the name that each has."""
    if isinstance(value, dict):
        return {key: named(each) for key, each in value.items()}
    if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
        return value
    names = [one.get("name") for one in value]
    if len(set(names)) == len(names) and all(isinstance(name, str) for name in names):
        unnamed = ({key: each for key, each in one.items() if key != "name"} for one in value)
        return dict(zip(names, map(named, unnamed), strict=True))
    return {f"[{at}]": named(one) for at, one in enumerate(value)}


def outline(value: Named, whole: bool = True) -> list[str]:
    """Return the lines of an object; without ``whole``, many of a kind are abridged."""
    return list(_lines(value, whole, {}, ()))


def _lines(
    value: Named, whole: bool, known: dict[str, str], above: tuple[str, ...]
) -> Iterator[str]:
    """``known``: what was shown before, and where."""
    plain: dict[str, list[str]] = {}
    below: dict[str, Named] = {}
    for key, each in value.items():
        if isinstance(each, dict) and each:
            below[_key(key)] = each
        elif (text := GONE if each is GONE else json.dumps(each)) in PLAIN:
            plain.setdefault(text, []).append(_key(key))
        else:
            yield f"{_key(key)}: {text}"
    if plain:
        text = "; ".join(f"{each}: {' '.join(keys)}" for each, keys in plain.items())
        yield f"plain values: as {known[text]}" if text in known else text
        if len(text) > REPEATED:
            known.setdefault(text, " ".join(above[-1:]))
    shown = {0, len(below) // 2, len(below) - 1}
    for at, (key, each) in enumerate(below.items()):
        text = json.dumps(each)
        if not whole and len(below) > MOST and at not in shown:
            yield f"{key}: sha256 {digest(text)}"
        elif text in known:
            yield f"{key}: as {known[text]}"
        else:
            if len(text) > REPEATED:
                known[text] = " ".join((*above, key))
            yield f"{key}:"
            yield from (f" {line}" for line in _lines(each, whole, known, (*above, key)))


def _key(key: str) -> str:
    return key if _SIMPLE.fullmatch(key) else json.dumps(key)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Named:
    """Return what differs in ``after``, as an object of its own."""
    found: Named = {}
    for key in dict.fromkeys((*after, *before)):
        old, new = before.get(key), after.get(key, GONE)
        if isinstance(old, dict) and isinstance(new, dict):
            if inner := changes(old, new):
                found[key] = inner
            elif old and not new:
                found[key] = new
        elif key not in before or type(old) is not type(new) or old != new:
            found[key] = new
    return found
