"""Which lines of the engine are reached, so that a mutant is tried only with what can see it."""

from __future__ import annotations

import mmap
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.mutants.generate import MODULES, source

Lines = dict[str, list[int]]
"""Lines by module."""
SLACK, SLOWER = 20.0, 5
"""So many seconds more, and so many times, than a test takes it may take with a mutant."""


class Tracer:
    """Notes the lines that are run meanwhile, in this process and in those it forks."""

    def __init__(self) -> None:
        self._begins: dict[str, int] = {}
        size = 0
        for module in MODULES:
            file = source(module)
            self._begins[str(file)] = size
            size += file.read_text().count("\n") + 2
        # A byte for each line, in memory that is shared with children, even those that get killed.
        self._reached = mmap.mmap(-1, size)

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Look on, in all threads that begin."""
        before = sys.gettrace()
        threading.settrace(self._call)
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(before)
            threading.settrace(before)

    def taken(self) -> Lines:
        """The lines since the last time."""
        reached = self._reached[:]
        self._reached[:] = bytes(len(reached))
        ends = [*list(self._begins.values())[1:], len(reached)]
        lines: Lines = {}
        for module, begin, end in zip(MODULES, self._begins.values(), ends, strict=True):
            if found := [at - begin for at in range(begin, end) if reached[at]]:
                lines[module] = found
        return lines

    def _call(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        return self._line if frame.f_code.co_filename in self._begins else None

    def _line(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            self._reached[self._begins[frame.f_code.co_filename] + frame.f_lineno] = 1
        return self._line


class Recorder:
    """A plugin of pytest: of every test that passes its seconds and lines, by its id."""

    def __init__(self) -> None:
        self.tests: dict[str, tuple[float, Lines]] = {}
        self._tracer = Tracer()
        self._failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Trace one test with its fixtures."""
        began = time.monotonic()
        with self._tracer.tracing():
            result = yield
        lines = self._tracer.taken()
        if item.nodeid not in self._failed and lines:
            self.tests[item.nodeid] = time.monotonic() - began, lines
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Forget a test that does not pass."""
        if not report.passed:
            self._failed.add(report.nodeid)


class Failures:
    """A plugin of pytest that notes what fails, and ends this process where a test hangs."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        """``seconds`` are those that each test takes undisturbed."""
        self.tests: list[str] = []
        self._seconds = seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Give one test SLACK and SLOWER times what it takes."""
        limit = SLACK + SLOWER * self._seconds.get(item.nodeid, 0.0)
        signal.setitimer(signal.ITIMER_REAL, limit)
        result = yield
        signal.setitimer(signal.ITIMER_REAL, 0)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note one."""
        if report.failed:
            self.tests.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not even be read."""
        if report.failed:
            self.tests.append(report.nodeid)


def quietly(arguments: Sequence[str], plugin: object, area: Path) -> int:
    """Run pytest in this process, with a directory for what the tests write; it prints nothing."""
    options = ["-p", "no:terminal", "-p", "no:cacheprovider", f"--basetemp={area}/tests"]
    return int(pytest.main([*options, *arguments], plugins=[plugin]))
