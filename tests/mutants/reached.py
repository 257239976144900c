"""Lines that each test reaches, so that a mistake is tried only with tests that can see it."""

from __future__ import annotations

import compileall
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests import proof
from tests.mutants.copies import TREE, Lines, Map, copied, inside
from tests.mutants.forked import DiedError, HangsError
from tests.mutants.generate import PACKAGE, Mutant

SLACK, SLOWER = 60.0, 5
"""Additional seconds, and the multiple of its usual time, that a test may take with a mistake.

Tests wait for up to 30 s themselves: with less, a busy machine would look like a mistake."""
FIRST = 30
"""Number of tests tried first: they catch most mistakes, and the others take long to import."""
HANGS = "hangs"
LOCK = ("tests/mutants/lock_cases.py",)
"""Files whose tests are the lock's cases, with results kept in KEPT."""
KEPT = TREE / "tests" / "lock" / "kept"
RECORDING = 6 * 3600.0
"""Limit in seconds for recording all tests, even on a busy machine."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A passing test, and the lines that it reaches."""

    test: str
    seconds: float
    lines: Lines

    def reaches(self, mutant: Mutant) -> bool:
        """Return whether it runs a line that the mistake changes."""
        return any(mutant.line <= line <= mutant.end for line in self.lines.get(mutant.file, ()))

    @property
    def width(self) -> int:
        """Return the number of lines it reaches; the fewer, the nearer the test is to each."""
        return sum(map(len, self.lines.values()))


class Recorder:
    """A pytest plugin that appends the time and the lines of every test to a file."""

    def __init__(self, found: Path, lines: Map) -> None:
        self._found, self._lines = found, lines
        self._done = {test for test, *_ in _rows(found, whole=False)}
        self._failed: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Skip tests that an earlier recording has done."""
        items[:] = [item for item in items if item.nodeid not in self._done]
        self._lines.taken()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[None]:
        """Record a test with its fixtures; after the last of a file, record the file as done."""
        began = time.monotonic()
        result = yield
        seconds = round(time.monotonic() - began, 3)
        passed = item.nodeid not in self._failed
        self._add(item.nodeid, passed, seconds, self._lines.taken())
        if nextitem is None or nextitem.path != item.path:
            self._add(_name(item.nodeid), True, 0.0, {})
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a test that does not pass."""
        if not report.passed:
            self._failed.add(report.nodeid)

    def _add(self, test: str, *rest: object) -> None:
        row = json.dumps([test, _digest(test), *rest])
        with self._found.open("ab", buffering=0) as file:  # one write: other processes append, too
            file.write(f"{row}\n".encode())


def _name(test: str) -> str:
    return test.partition("::")[0]


def _digest(test: str) -> str:
    """Return the digest of a test's file, or of the kept texts of its part if it is a lock case."""
    part = test.partition("[")[2].partition("/")[0]
    return _digest_of(KEPT / part if _name(test) in LOCK else TREE / _name(test))


@cache
def _digest_of(place: Path) -> str:
    files = place.rglob("*") if place.is_dir() else [place]
    return proof.digest(file for file in files if file.is_file())


def _rows(found: Path, whole: bool) -> Iterator[tuple[str, bool, float, Lines]]:
    """Yield what was recorded of unchanged tests; their lines take long to read."""
    with found.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):  # otherwise its process was killed while writing it
                test, written, *rest = json.loads(line if whole else _without_lines(line))
                if written == _digest(test):
                    yield test, *rest


def _without_lines(row: bytes) -> bytes:
    return row[: row.rindex(b", {")] + b", {}]"


def files_of(*places: str, but: Sequence[str] = ()) -> list[str]:
    """Return the test files below some directories."""
    files = (file for place in places for file in (TREE / place).rglob("test_*.py"))
    names = sorted(file.relative_to(TREE).as_posix() for file in files)
    return [name for name in names if not name.startswith(tuple(but))]


def recorded(files: Iterable[str], jobs: int) -> Iterator[Reached]:
    """Yield every passing test of some files; unknown ones are run and recorded first."""
    for folder in (PACKAGE, TREE / "tests"):  # otherwise each process of a copy might compile all
        compileall.compile_dir(folder, quiet=1)
    sources = proof.digest(PACKAGE.rglob("*.py"))
    found = proof.cache("mutants") / f"lines-{sources}.jsonl"
    found.parent.mkdir(parents=True, exist_ok=True)
    for old in found.parent.glob("lines-*.jsonl"):
        if old != found:
            old.unlink()
    found.touch()
    through = {test for test, *_ in _rows(found, whole=False) if "::" not in test}
    if missing := [file for file in files if file not in through]:
        # Large files first, so that the parts take about the same time.
        missing.sort(key=lambda file: -(TREE / file).stat().st_size)
        parts = [missing[at::jobs] for at in range(jobs)]
        list(side_by_side(jobs, partial(_record, found), parts))
    wanted = set(files)
    for test, passed, seconds, lines in _rows(found, whole=True):
        if passed and lines and _name(test) in wanted:
            yield Reached(test, seconds, lines)


def _record(found: Path, files: Sequence[str]) -> None:
    """Run some test files in a copy, and append the lines that they reach."""
    with tempfile.TemporaryDirectory(dir=found.parent) as place:
        tree, lines = copied(Path(place)), Map(Path(place) / "map")
        Path(place).chmod(0o755)
        lines.build_into(tree)
        inside(tree, lambda: quietly(files, Recorder(found, lines)), RECORDING)


class Failures:
    """A pytest plugin that runs some tests in a given order, and records which fail.

    It ends this process if a test hangs.
    """

    def __init__(self, seconds: Mapping[str, float]) -> None:
        """``seconds`` has the time that each test takes undisturbed."""
        self.tests: list[str] = []
        self._seconds = seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Select and sort the tests."""
        order = {test: at for at, test in enumerate(self._seconds)}
        items[:] = [item for item in items if item.nodeid in order]
        items.sort(key=lambda item: order[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Limit the time of one test."""
        seconds = limit({item.nodeid: self._seconds[item.nodeid]})
        signal.setitimer(signal.ITIMER_REAL, seconds)
        result = yield
        signal.setitimer(signal.ITIMER_REAL, 0)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a failed test."""
        if report.failed:
            self.tests.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that cannot be imported."""
        if report.failed:
            self.tests.append(report.nodeid)


def quietly(arguments: Sequence[str], plugin: object) -> int:
    """Run pytest in this process without output; tests write to a temporary directory."""
    with tempfile.TemporaryDirectory() as area:
        options = ["-p", "no:terminal", "-p", "no:cacheprovider", f"--basetemp={area}/tests"]
        return int(pytest.main([*options, *arguments], plugins=[plugin]))


def failing(tests: Mapping[str, float]) -> str:
    """Return the first of these tests that fails; empty if all pass. ``tests`` has their times."""
    failures = Failures(tests)
    code = quietly(["-x", *dict.fromkeys(_name(test) for test in tests)], failures)
    if failures.tests or code == pytest.ExitCode.OK:
        return "".join(failures.tests[:1])
    return f"pytest ended with {code}"


Attempt = Callable[[Mapping[str, float], bool], str]
"""Returns the first of some tests that fails, with the mistake or without."""


def first_failure(tests: Mapping[str, float], attempt: Attempt, unsure: str = "") -> str:
    """Return the first test that fails with a mistake and passes without it; empty for none.

    A result that ends all of them ("hangs", "died: …") is returned as it is. If that also happens
    without the mistake, the machine is too busy to tell, and ``unsure`` is returned if no other
    test fails.
    """
    found = ""
    order = list(tests)
    batches = [order[:FIRST], order[FIRST:]]
    while batches:
        batch = {test: tests[test] for test in batches.pop(0)}
        what = attempt(batch, True) if batch else ""
        if what in batch:
            alone = {what: tests[what]}
            if (len(batch) == 1 or attempt(alone, True)) and not attempt(alone, False):
                return what
            batches.insert(0, list(batch)[list(batch).index(what) + 1 :])
        elif what and not attempt(batch, False):
            return what
        elif what:
            found = unsure
    return found


def limit(tests: Mapping[str, float]) -> float:
    """Return the seconds that some tests may take together, more on a busy machine."""
    busy = max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))
    return busy * (SLACK + SLOWER * sum(tests.values()))


def within(seconds: float, tests: Mapping[str, float]) -> dict[str, float]:
    """Return the first of some tests that fit in ``seconds``, but at least one."""
    chosen: dict[str, float] = {}
    for test, takes in tests.items():
        if takes <= seconds or not chosen:
            seconds -= takes
            chosen[test] = takes
    return chosen


def answer(trial: Callable[[], str]) -> str:
    """Return the problem that a trial in another process reports, or how it ended without one."""
    try:
        return trial()
    except HangsError:
        return HANGS
    except DiedError as error:
        return f"died: {error}"


def side_by_side(jobs: int, act: Callable[[Any], Any], given: Iterable[Any]) -> Iterator[Any]:
    """Yield the results of ``act`` in parallel processes, as they end."""
    # Not a Pool: its processes may not start processes of their own, as some tests do.
    with ProcessPoolExecutor(jobs, get_context("fork")) as processes:
        try:
            for done in as_completed([processes.submit(act, each) for each in given]):
                yield done.result()
        finally:
            processes.shutdown(wait=False, cancel_futures=True)
