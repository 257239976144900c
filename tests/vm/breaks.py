"""Break every decoder on purpose, a line at a time, and say what the sources notice.

``python -m tests.vm.breaks DIR [MODULE…]`` takes what `test_agreement` kept in DIR (see its KEEP),
or `tests/fixtures/agreement.jsonl.gz`, breaks each module of ``zconsole.zfs.decode`` in every way
`mutants` knows, compares the sources again and prints the breaks that nothing noticed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import multiprocessing
import os
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from tests.vm.errors import VmError
from tests.vm.mutants import mutants

PACKAGE = Path(__file__).parents[2] / "zconsole"
MODULES = tuple(sorted(path.stem for path in (PACKAGE / "zfs" / "decode").glob("[a-z]*.py")))
UNIT = PACKAGE.parent / "tests" / "unit" / "zfs" / "decode"
TOO_LONG = 60
"""Seconds after which a broken loop counts as noticed."""
MEMORY = 2 << 30
BY_TESTS = "the unit tests"


class Fate(NamedTuple):
    """What became of one break."""

    module: str
    line: int
    function: str
    what: str
    noticed: str
    """The first state that told, and how; "" for a break that none did."""
    reached: bool
    """Whether any state comes by the broken line at all."""


class TooLong(BaseException):
    """A broken loop that does not end; no decoder catches it."""


def main() -> None:
    """Print the breaks that nothing noticed, and how many of each module there were."""
    arguments = _arguments()
    with multiprocessing.get_context("fork").Pool(maxtasksperchild=1) as workers:
        lines = workers.apply(lines_reached, (arguments.kept,))
        if arguments.unit and workers.apply(failing_tests):
            raise VmError("the unit tests fail without a break")
        jobs = [(module, i) for module in arguments.modules for i in range(_count(module))]
        work = partial(fate, arguments.kept, lines, arguments.unit)
        fates = list(_shown(workers.imap(work, jobs, chunksize=1), arguments.unit))
    for module in arguments.modules:
        print(_summary(module, [each for each in fates if each.module == module]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.vm.breaks", description=__doc__)
    parser.add_argument("kept", type=Path)
    parser.add_argument("modules", nargs="*", default=MODULES, metavar="MODULE")
    parser.add_argument("--unit", action="store_true", help="ask the unit tests about the rest")
    return parser.parse_args()


def _count(module: str) -> int:
    return sum(1 for _ in mutants(_tree(module)))


def _tree(module: str) -> ast.Module:
    return ast.parse(_file(module).read_text())


def _file(module: str) -> Path:
    return PACKAGE / "zfs" / "decode" / f"{module}.py"


def _shown(fates: Iterator[Fate], everything: bool) -> Iterator[Fate]:
    for each in fates:
        if not each.noticed and (each.reached or everything):
            where = "" if each.reached else " (never reached)"
            print(f"{each.module}:{each.line} {each.function}: {each.what}{where}", flush=True)
        yield each


def _summary(module: str, fates: Sequence[Fate]) -> str:
    kinds = Counter("idle" if not f.reached else "states" for f in fates if not f.noticed)
    by_tests = sum(each.noticed == BY_TESTS for each in fates)
    by_states = sum(bool(each.noticed) for each in fates) - by_tests
    told = f"{by_states} noticed by the states, {by_tests} by unit tests"
    return f"{module}: {len(fates)} breaks, {told}, {kinds['states']} not, {kinds['idle']} idle"


def lines_reached(path: Path) -> frozenset[tuple[str, int]]:
    """File and line of whatever runs while every state is decoded as it should be."""
    found: set[tuple[str, int]] = set()
    folder = str(PACKAGE / "zfs" / "decode")

    def trace(frame: Any, _event: str, _argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(folder):
            return None
        found.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    sys.settrace(trace)
    disagreement = first_disagreement(path)
    sys.settrace(None)
    if disagreement:
        raise VmError(f"already without a break: {disagreement}")
    return frozenset(found)


def fate(path: Path, lines: frozenset[tuple[str, int]], unit: bool, job: tuple[str, int]) -> Fate:
    """Break one thing in this very process, and decode every state or test with it."""
    module, index = job
    tree = _tree(module)
    mutant = list(mutants(tree))[index]
    reached = any((str(_file(module)), line) in lines for line in mutant.lines)
    checks = [partial(first_disagreement, path)] if reached else []
    checks += [partial(failing_tests)] if unit else []
    mutant.apply()
    noticed = _noticed(module, tree, checks) if checks else ""
    words = " ".join(noticed.split())[:160]
    return Fate(module, mutant.line, mutant.function, mutant.what[:60], words, reached)


def _noticed(module: str, tree: ast.Module, checks: Sequence[Callable[[], str]]) -> str:
    """What the first check to find something found in the broken module."""
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(TOO_LONG)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        code = compile(ast.fix_missing_locations(tree), str(_file(module)), "exec")
        _install(f"zconsole.zfs.decode.{module}", code)
        return next(filter(None, (check() for check in checks)), "")
    except (Exception, TooLong) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)


def _stop(*_: object) -> None:
    raise TooLong


def _install(name: str, code: CodeType) -> None:
    """Have a module imported from other code than its file's; none of the package is yet."""
    get_code = SourceFileLoader.get_code
    assert name not in sys.modules

    def get_broken(self: SourceFileLoader, fullname: str) -> CodeType | None:
        return code if fullname == name else get_code(self, fullname)

    SourceFileLoader.get_code = get_broken  # type: ignore[method-assign]


def first_disagreement(path: Path) -> str:
    """The first state whose sources differ, and in what; "" when they all agree."""
    from tests.vm.kept import kept

    for each in kept(path):
        try:
            each.check()
        except AssertionError as error:
            return f"{each.release}, {each.state.name}: {error}"
    return ""


def failing_tests() -> str:
    """Whether the unit tests of the decoders, but the slow ones, fail; "" when they pass."""
    import pytest

    slow = [f"--ignore={UNIT / name}.py" for name in ("test_roundtrip", "test_robust")]
    options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=no", *slow]
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        code = pytest.main([str(UNIT), *options])
    return "" if code == pytest.ExitCode.OK else BY_TESTS


if __name__ == "__main__":
    main()
