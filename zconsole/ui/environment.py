"""What the environment says about the terminal; imports no textual, which reads it at import."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from pathlib import Path

_SETTINGS = {
    "TEXTUAL_ANIMATIONS": "none",
    "TEXTUAL_SMOOTH_SCROLL": "0",
    "TEXTUAL_FPS": "40",
    "ESCDELAY": "50",
}
"""Each saves bytes on a slow line: no easing, and bursts of changes drawn at most 40 times/s.

Fewer would save more, but every paint, the first too, waits for up to one such moment."""


def prepare(environ: MutableMapping[str, str]) -> None:
    """Set what textual reads when it is imported, where the operator has not set it."""
    for name, value in _SETTINGS.items():
        environ.setdefault(name, value)


def as_started(
    environ: Mapping[str, str], memory: Path = Path("/proc/self/environ")
) -> Mapping[str, str]:
    """``environ`` without the ``LC_CTYPE`` that Python itself sets where the locale is C (PEP 538).

    What the process was started with stays in its memory; where that cannot be read, nothing is
    taken off.
    """
    try:
        given = memory.read_bytes().split(b"\0")
    except OSError:
        return environ
    if any(word.startswith(b"LC_CTYPE=") for word in given):
        return environ
    return {name: value for name, value in environ.items() if name != "LC_CTYPE"}


def ascii_only(environ: Mapping[str, str]) -> bool:
    """Whether the terminal should get ASCII only: the locale is not UTF-8, or a Linux console.

    The locale is read from the environment, because Python coerces ``C`` to ``C.UTF-8``; give it
    the environment ``as_started``, because Python coerces that too.
    """
    if environ.get("TERM") == "linux":
        return True
    names = (environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next((name for name in names if name), "C")
    return "utf8" not in locale.lower().replace("-", "")
