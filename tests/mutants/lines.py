"""Recording which lines of zconsole run: here, in forks, and in every process that imports a copy.

The map is a file with one byte per line, so that child processes add to it, even those that get
killed. Only the standard library is imported: a copy of the package runs this file as it is.
"""

from __future__ import annotations

import mmap
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

TOOL = 1
"""Tool id of coverage tools in sys.monitoring."""


def watch(path: str, begins: Mapping[str, int]) -> None:
    """Record lines from now on; ``begins`` has the offset of each file of zconsole in the map."""
    with suppress(OSError), Path(path).open("r+b") as file:  # not every process may write there
        reached = mmap.mmap(file.fileno(), 0)

        def _begin(code: CodeType) -> int | None:
            return begins.get(code.co_filename.rpartition("/zconsole/")[2])

        if sys.version_info >= (3, 12):
            _monitor(reached, _begin)
        else:
            _trace(reached, _begin)


def again() -> None:
    """Record lines again that were recorded before."""
    if sys.version_info >= (3, 12):
        sys.monitoring.restart_events()


def _monitor(reached: mmap.mmap, begin: Any) -> None:
    """Record every line once, by sys.monitoring; nearly free."""
    watching = sys.monitoring

    def _started(code: CodeType, _offset: int) -> Any:
        if begin(code) is not None:
            watching.set_local_events(TOOL, code, watching.events.LINE)
        # Each function and line is reported once; after that, code runs at full speed.
        return watching.DISABLE

    def _line(code: CodeType, line: int) -> Any:
        reached[begin(code) + line] = 1
        return watching.DISABLE

    if watching.get_tool(TOOL) is None:
        watching.use_tool_id(TOOL, "mutants")
    watching.register_callback(TOOL, watching.events.PY_START, _started)
    watching.register_callback(TOOL, watching.events.LINE, _line)
    watching.set_events(TOOL, watching.events.PY_START)


def _trace(reached: mmap.mmap, begin: Any) -> None:
    """Record every line every time, by tracing: Python 3.11 has nothing better."""

    def _call(frame: FrameType, _event: str, _argument: Any) -> Any:
        return _line if begin(frame.f_code) is not None else None

    def _line(frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            reached[begin(frame.f_code) + frame.f_lineno] = 1
        return _line

    threading.settrace(_call)
    sys.settrace(_call)
