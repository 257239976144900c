"""The entry point, run in this process with fixed clock, time zone, user and directories.

Everything is pinned in the standard library, before the program is imported, because it may bind
``time.time`` at import.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

NOW = 1_796_083_200.0
"""2026-12-01 00:00 UTC, which every clock shows."""
SAVED = 1_795_824_000
"""2026-11-28 00:00 UTC, the modification time of files."""
USER = 1000


@dataclass(frozen=True, slots=True)
class Done:
    """Result of a run of the program."""

    code: object
    out: str
    err: str


def run(*words: str) -> Done:
    """Run the program in the scratch directory; an exception counts as part of its output."""
    main, scratch = _program()
    stream = {"mode": "w+", "encoding": "utf-8", "newline": ""}
    with tempfile.TemporaryFile(**stream) as out, tempfile.TemporaryFile(**stream) as err:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(list(words))
            except SystemExit as end:
                code = end.code
            except Exception as error:
                code = "raised " + traceback.format_exception_only(error)[-1].strip()
        left = sorted(str(path.relative_to(scratch)) for path in (scratch / "home").rglob("*"))
        return Done(code, _read(out), _read(err) + "".join(f"left {path}\n" for path in left))


def _read(stream: Any) -> str:
    stream.flush()
    stream.seek(0)
    return stream.buffer.read().decode("utf-8", "surrogateescape")


def save(name: str, content: bytes) -> str:
    """Write a file with time SAVED to the scratch directory; returns its name."""
    path = _program()[1] / name
    path.write_bytes(content)
    os.utime(path, (SAVED, SAVED))
    return name


@cache
def _program() -> tuple[Any, Path]:
    """Return the entry point and the scratch directory, created once per process.

    Raises RuntimeError if the program was imported before, because it may use the real clock.
    """
    if "zconsole" in sys.modules:
        raise RuntimeError("zconsole is imported already: cases run in a process of their own")
    holder = tempfile.TemporaryDirectory(prefix="zconsole-lock-")
    scratch = Path(holder.name)
    home = scratch / "home"
    home.mkdir()
    os.environ.clear()
    os.environ.update({"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", "COLUMNS": "80"})
    os.environ.update({"HOME": str(home), "ZCONSOLE_STATE": str(home / "state")})
    for name in ("CONFIG", "STATE", "DATA", "CACHE"):
        os.environ[f"XDG_{name}_HOME"] = str(home / name.lower())
    time.tzset()
    os.chdir(scratch)
    for clock, at in (("time", NOW), ("time_ns", int(NOW) * 10**9)):
        patch.object(time, clock, lambda at=at: at).start()
    for user in ("getuid", "geteuid"):  # root would read the configuration of the machine
        patch.object(os, user, lambda: USER).start()
    # After whatever the interpreter needs the real clock for.
    main = import_module("zconsole.cli.main").main
    # The directory is deleted with its holder, so keep that as long as the entry point.
    main.holder = holder
    return main, scratch
