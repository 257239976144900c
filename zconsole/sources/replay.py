"""Playing a recording: a source like any other, with the recording's own time."""

from __future__ import annotations

import asyncio
import json
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from zconsole.decode.values import POOL_LINE
from zconsole.errors import NotFoundError, NotUnderstoodError, UnavailableError, ZconsoleError
from zconsole.raw import FORM_TYPES, FORMS, Raw
from zconsole.sources.base import Capabilities
from zconsole.sources.opened import opened

LONGEST_PAUSE = 10.0
"""Seconds a gap in the recording takes at most, however long it was."""

_OBJECTS = frozenset({"names", "message", "host", "devices"})
"""Keys beyond the format's own whose values are objects."""


class ReplaySource:
    """The samples of a recording; ``speed`` 2 plays twice as fast, None as fast as it goes."""

    def __init__(self, path: str, speed: float | None = 1.0) -> None:
        self._path = path
        self._speed = speed
        self._note = ""
        self._rounds: Iterator[tuple[Raw, ...]] | None = None
        self._last: float | None = None
        self._due = 0.0

    @property
    def capabilities(self) -> Capabilities:
        """See Source.capabilities; ``details`` has a ``note`` about a recording cut short."""
        return Capabilities(
            name="replay",
            live=False,
            denied="this is a recording",
            flags=("REPLAY",),
            details={"note": self._note} if self._note else {},
        )

    async def sample(self) -> tuple[Raw, ...] | None:
        """See Source.sample. Raises NotUnderstoodError with the number of a damaged line."""
        if self._rounds is None:
            self._rounds = self._group()
        found = next(self._rounds, None)
        if found is not None:
            await self._wait_for(found[0]["t"])
        return found

    async def aclose(self) -> None:
        """See Source.aclose."""
        self._rounds = iter(())

    async def _wait_for(self, t: float) -> None:
        """Let as much time pass as between the two samples, at the asked speed."""
        now = asyncio.get_running_loop().time()
        if self._speed is not None and self._last is not None:
            pause = min(LONGEST_PAUSE, max(0.0, t - self._last) / self._speed)
            self._due = max(self._due + pause, now)
            await asyncio.sleep(self._due - now)
        else:
            self._due = now
        self._last = t

    def _group(self) -> Iterator[tuple[Raw, ...]]:
        """Rounds of one sample a pool: a pool seen again begins the next."""
        group: dict[str, Raw] = {}
        damage = None
        try:
            for raw in self._read():
                pool = pool_name(raw)
                if pool in group:
                    yield tuple(group.values())
                    group.clear()
                group[pool] = raw
        except NotUnderstoodError as error:
            damage = error
        if group:
            yield tuple(group.values())
        if damage is not None:
            raise damage

    def _read(self) -> Iterator[Raw]:
        seen = False
        for number, line in enumerate(self._lines(), 1):
            if not line.strip():
                continue
            seen = True
            try:
                yield cast("Raw", {**_sample(line), "place": f"{self._path}: line {number}"})
            except ValueError as error:
                if number > 1 and not line.endswith("\n"):
                    self._note = f"{self._path}: the last line is cut short and left out"
                    return
                raise NotUnderstoodError(f"{self._path}: line {number}: {error}") from None
        if not seen:
            raise NotUnderstoodError(f"{self._path}: no samples in it")

    def _lines(self) -> Iterator[str]:
        try:
            with opened(Path(self._path)) as file:
                yield from file
        except FileNotFoundError:
            raise NotFoundError(f"{self._path}: no such file") from None
        except PermissionError:
            raise UnavailableError(f"{self._path}: permission denied") from None
        except (EOFError, UnicodeError, zlib.error) as error:
            raise NotUnderstoodError(f"{self._path}: damaged: {error}") from None
        except OSError as error:
            raise ZconsoleError(f"{self._path}: {error.strerror or error}") from None


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
    if value is None:
        return False
    if key == "events":
        return isinstance(value, list) and all(map(_is_event, value))
    if key == "tunables":
        return isinstance(value, dict) and all(isinstance(n, int) for n in value.values())
    return key not in _OBJECTS or isinstance(value, dict)


def _is_event(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("t"), (int, float))


def _sample(line: str) -> Raw:
    """A line of a recording; raises ValueError with what is wrong with it."""
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("no JSON") from None
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    found = {key: value for key, value in found.items() if _is_ours(key, value)}
    t = found.get("t")
    if not isinstance(t, (int, float)) or isinstance(t, bool) or not math.isfinite(t):
        raise ValueError("no time t")
    if not any(isinstance(found.get(form), kind) for form, kind in FORM_TYPES.items()):
        raise ValueError("none of " + ", ".join(FORMS))
    if any(not isinstance(found.get(form, kind()), kind) for form, kind in FORM_TYPES.items()):
        raise ValueError("a form of another type")
    return cast("Raw", {**found, "source": "replay"})
