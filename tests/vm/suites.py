"""`python -m tests.vm.suites`: what must pass on every release, and a table of what did."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.proof import INTERRUPTED, digest, table
from tests.vm import image
from tests.vm.cache import exclusive, subdirectory
from tests.vm.errors import NotAvailableError, VmError
from tests.vm.releases import RELEASES
from tests.vm.wheels import TREE

CHOSEN = ("bookworm", "2.2", "trixie", "sid")
"""One release for each series of OpenZFS: 2.1, 2.2, 2.3 and 2.4."""
SUITES = ("agreement", "actions", "live", "hanging", "rebalance")
HEADS = ("release", "OpenZFS", "kernel", "Python", "passed", "failed", "skipped", "left")
SOURCES = ("zconsole", "themes", "tests/vm", "tests/conftest.py", "pyproject.toml")


class Result(NamedTuple):
    """Result of one test; the reason of a failure or a skip is one line."""

    outcome: str
    reason: str
    tree: str
    """Digest of the source tree that it was run on."""


@dataclass
class Results:
    """Results of the tests on one image, saved in a file."""

    path: Path
    ended: dict[str, Result] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    """Tests that still have to run."""

    @classmethod
    def load(cls, built: image.Image, trees: Iterable[str] = ()) -> Results:
        """Load the results of these trees, or of any tree if none is named."""
        results = cls(subdirectory("suites") / f"{built.directory.name}.json")
        if results.path.exists():
            read = json.loads(results.path.read_text())
            results.ended = {name: Result(*words) for name, words in read.items()}
        if trees:
            results.ended = {n: each for n, each in results.ended.items() if each.tree in trees}
        return results

    def add(self, name: str, result: Result) -> None:
        """Add a result, and save it at once: the run may be stopped."""
        self.left.discard(name)
        self.ended[name] = result
        draft = self.path.with_suffix(".draft")
        draft.write_text(json.dumps(self.ended, indent=0))
        draft.replace(self.path)

    def counts(self, names: Iterable[str]) -> dict[str, int]:
        """Count how many of these tests ended in each way."""
        found = [self.ended[name].outcome for name in names if name in self.ended]
        return {outcome: found.count(outcome) for outcome in ("passed", "failed", "skipped")}


@dataclass
class Recorder:
    """A pytest plugin that skips tests that passed on a release, and saves new results."""

    results: dict[str, Results]
    tree: str
    only_show: bool = False
    tests: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Names of each release's tests, in order."""
    release_of: dict[str, str] = field(default_factory=dict)
    reports: list[pytest.TestReport] = field(default_factory=list)
    """Reports of the current test: its setup, call and teardown."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Skip tests that need no machine or have passed."""
        kept, gone = [], []
        for item in items:
            release = item.callspec.params.get("built") if hasattr(item, "callspec") else None
            if release is not None:
                self.release_of[item.nodeid] = release
                self.tests[release].append(item.nodeid)
            (kept if release is not None and self._is_left(item.nodeid) else gone).append(item)
        config.hook.pytest_deselected(items=gone)
        items[:] = [] if self.only_show else kept

    def _is_left(self, name: str) -> bool:
        """Return whether a test has to run; a failed one is repeated."""
        results = self.results[self.release_of[name]]
        ended = results.ended.get(name)
        if ended is None:
            results.left.add(name)
        return ended is None or ended.outcome == "failed"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Save the result of a test when it has ended."""
        self.reports.append(report)
        if report.when == "teardown":
            outcome, reason = judged(self.reports)
            self.reports = []
            found = self.results[self.release_of[report.nodeid]]
            found.add(report.nodeid, Result(outcome, reason, self.tree))


def judged(reports: Sequence[pytest.TestReport]) -> tuple[str, str]:
    """Return how a test ended, and why it failed or was skipped, from the reports of its phases."""
    for outcome in ("failed", "skipped"):
        for report in reports:
            if report.outcome == outcome:
                return outcome, _why(report)
    return "passed", ""


def _why(report: pytest.TestReport) -> str:
    """Return the reason in one line."""
    found: Any = report.longrepr
    if isinstance(found, tuple):
        return str(found[2]).removeprefix("Skipped: ")
    crash = getattr(found, "reprcrash", None)
    lines = str(crash.message if crash else found).splitlines() or [""]
    return lines[0]


def available(names: Sequence[str], build: bool) -> tuple[dict[str, image.Image], dict[str, str]]:
    """Return the images of releases, and why others have none."""
    images: dict[str, image.Image] = {}
    missing: dict[str, str] = {}
    for name in names:
        found = image.find(RELEASES[name])
        try:
            if found or build:
                images[name] = found or image.build(name)
            else:
                missing[name] = "skipped: not built"
        except NotAvailableError as error:
            missing[name] = f"skipped: {error}"
        except VmError as error:
            missing[name] = f"failed: {error}"
    return images, missing


def sources() -> str:
    """Return a digest of the tested code and the tests; when it changes, all are run again."""
    files = []
    for part in SOURCES:
        path = TREE / part
        files += path.rglob("*") if path.is_dir() else [path]
    return digest(file for file in files if file.is_file() and "__pycache__" not in file.parts)


def show(recorder: Recorder, images: dict[str, image.Image], missing: dict[str, str]) -> bool:
    """Print the table, and each reason once; returns whether everything passed."""
    rows = [HEADS]
    for name in sorted([*images, *missing], key=list(RELEASES).index):
        if name in missing:
            rows.append((name, *"-" * (len(HEADS) - 1)))
            continue
        built, results = images[name], recorder.results[name]
        counts = (*results.counts(recorder.tests[name]).values(), len(results.left))
        rows.append((name, built.zfs, built.kernel, built.python, *map(str, counts)))
    print(f"\n{table(rows, left=4)}")
    for name, reason in missing.items():
        print(f"\n{name} {reason}")
    for outcome in ("skipped", "failed"):
        _show_reasons(recorder, outcome)
    _show_older(recorder)
    bad = any(found.counts(recorder.tests[name])["failed"] or found.left
              for name, found in recorder.results.items())  # fmt: skip
    return not bad and not any(reason.startswith("failed") for reason in missing.values())


def _show_reasons(recorder: Recorder, outcome: str) -> None:
    """Print each reason once, with the tests that ended that way."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for release, results in recorder.results.items():
        for name in recorder.tests[release]:
            ended = results.ended.get(name)
            if ended is not None and ended.outcome == outcome:
                found[ended.reason][release].append(_short(name, release))
    for reason, releases in found.items():
        print(f"\n{outcome}: {reason}")
        for release, names in releases.items():
            print(f"  {release}: {', '.join(names)}")


def _short(name: str, release: str) -> str:
    """Return a test's name without its file and its release."""
    return name.partition("::")[2].replace(f"[{release}]", "").replace(f"[{release}-", "[")


def _show_older(recorder: Recorder) -> None:
    """Print how many results are of other sources."""
    older = [
        name
        for release, results in recorder.results.items()
        for name in recorder.tests[release]
        if name in results.ended and results.ended[name].tree != recorder.tree
    ]
    if older:
        print(f"\n{len(older)} of these results are those of other versions of this tree.")


def main(words: list[str] | None = None) -> int:
    """Start or continue; returns 1 if a test failed."""
    arguments = _parser().parse_args(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    names = arguments.release or CHOSEN
    tree = sources()
    locks = [] if arguments.show else sorted(names)
    try:
        with ExitStack() as held:
            for name in locks:
                held.enter_context(exclusive(subdirectory("suites") / f"{name}.lock"))
            images, missing = available(names, build=not arguments.show)
            trees = () if arguments.older else (tree,)
            results = {name: Results.load(built, trees) for name, built in images.items()}
            if arguments.again:
                results = {name: Results(found.path) for name, found in results.items()}
            recorder = Recorder(results, tree, arguments.show)
            status = _run(recorder, arguments.suite) if images else pytest.ExitCode.OK
    except KeyboardInterrupt:
        return INTERRUPTED  # interrupted while an image was built
    well = show(recorder, images, missing)
    if status == pytest.ExitCode.INTERRUPTED:
        print("stopped; the same command goes on from here")
        return INTERRUPTED
    return 0 if well else 1


def _run(recorder: Recorder, suites: Sequence[str]) -> int:
    """Run the remaining tests, release by release."""
    os.environ["ZCONSOLE_VM_REQUIRED"] = "1"
    os.environ["ZCONSOLE_VM_RELEASES"] = ",".join(recorder.results)
    directory = TREE / "tests" / "vm"
    files = sorted({f for name in suites or SUITES for f in directory.glob(f"test_{name}*.py")})
    quiet = ["-q", "--no-header", "--no-summary"] if recorder.only_show else ["-v", "--tb=short"]
    options = ["-m", "zfs", f"--rootdir={TREE}", "-p", "no:cacheprovider", *quiet]
    return pytest.main([*options, *map(str, files)], plugins=[recorder])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.vm.suites", description=__doc__)
    parser.add_argument(
        "suite", nargs="*", help=f"tests/vm/test_SUITE*.py (default: {' '.join(SUITES)})"
    )
    parser.add_argument(
        "--release",
        action="append",
        choices=RELEASES,
        help=f"may be repeated ({', '.join(CHOSEN)})",
    )
    parser.add_argument("--show", action="store_true", help="print the table, run nothing")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs did")
    parser.add_argument(
        "--older", action="store_true", help="count what other versions of this tree passed, too"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
