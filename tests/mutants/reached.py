"""Which lines of the engine are reached, so that a mutant is tried only with what can see it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.mutants.generate import MODULES, source

Lines = dict[str, list[int]]
"""Lines by module."""


class Tracer:
    """Notes the lines that are run meanwhile."""

    def __init__(self) -> None:
        self._files = {str(source(module)): module for module in MODULES}
        self._found: set[tuple[str, int]] = set()

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
        lines: Lines = {}
        for file, line in sorted(self._found):
            lines.setdefault(self._files[file], []).append(line)
        self._found = set()
        return lines

    def _call(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        return self._line if frame.f_code.co_filename in self._files else None

    def _line(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            self._found.add((frame.f_code.co_filename, frame.f_lineno))
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
    """A plugin of pytest that notes what fails."""

    def __init__(self) -> None:
        self.tests: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note one."""
        if report.failed:
            self.tests.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not even be read."""
        if report.failed:
            self.tests.append(report.nodeid)


def quietly(arguments: list[str], plugin: object, area: Path) -> int:
    """Run pytest in this process, with a directory for what the tests write."""
    options = ["-q", "-p", "no:cacheprovider", "--no-header", f"--basetemp={area}/tests"]
    return int(pytest.main([*options, *arguments], plugins=[plugin]))
