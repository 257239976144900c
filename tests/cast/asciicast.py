"""Terminal recordings in asciinema's format, version 2: a header, then one line per event."""

from __future__ import annotations

import json
from dataclasses import dataclass

VERSION = 2
OUTPUT, INPUT = "o", "i"


@dataclass(frozen=True)
class Event:
    """Output or input, and its time in seconds."""

    at: float
    kind: str
    text: str


@dataclass(frozen=True)
class Cast:
    """A recording of a terminal of the given size."""

    columns: int
    rows: int
    title: str
    seconds: float
    events: tuple[Event, ...]


def dumped(cast: Cast) -> str:
    """Return a recording as text."""
    header = {
        "version": VERSION,
        "width": cast.columns,
        "height": cast.rows,
        "duration": cast.seconds,
        "title": cast.title,
        "env": {"TERM": "xterm-256color"},
    }
    events = ([event.at, event.kind, event.text] for event in cast.events)
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in (header, *events))


def loaded(text: str) -> Cast:
    """Parse a recording written by ``dumped``."""
    header, *events = map(json.loads, text.removesuffix("\n").split("\n"))
    size = header["width"], header["height"]
    return Cast(
        *size, header["title"], header["duration"], tuple(Event(*event) for event in events)
    )
