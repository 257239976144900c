"""JSON as lines that people read: an outline of an object, and its changes from another one.

Lists of objects with names are shown by these names. Keys with plain values share a line:

    state: "DEGRADED"
    0: read write cksum; null: read_rate write_rate
    children:
     raidz2-0:
      state: "ONLINE"

Floats are rounded: their last digits differ between C libraries and versions of Python (since 3.12,
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
"""Up to this many objects below one key are all shown; of more, the first, middle and last."""
REPEATED = 60
"""Texts with more characters than this are not shown a second time."""
GONE = "gone"
DIGITS = 6
_SIMPLE = re.compile(r"[\w./\[\]-]+")

Named = dict[str, Any]
"""An object in which lists of objects are replaced by objects by name."""


def parsed(line: str, simulated: bool = False) -> Any:
    """Return the JSON of a line, with rounded floats. Raises ValueError if it is not JSON.

    With ``simulated``, its integers are truncated floats, so large ones are rounded as well.
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
    """Parse a float and round it unless it is a time: a rate of 1e9 has seven exact decimals."""
    number = float(text)
    return _rounded(text) if 1e9 <= number < 2e9 else float(f"{number:.{DIGITS}g}")


def named(value: Any) -> Any:
    """Return a value in which lists of objects are replaced by objects by name."""
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
    """Return the lines of an object; without ``whole``, many objects of a kind are abridged."""
    return list(_lines(value, whole, {}, ()))


def _lines(
    value: Named, whole: bool, known: dict[str, str], above: tuple[str, ...]
) -> Iterator[str]:
    """Yield the lines of an object; ``known`` is what was shown before, and where."""
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
    """Return the parts of ``after`` that differ from ``before``, as an object."""
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
