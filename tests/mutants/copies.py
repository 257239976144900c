"""Copies of the tree that record the lines that run, in every process, or that hold a mistake."""

from __future__ import annotations

import ast
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.mutants import lines
from tests.mutants.forked import forked
from tests.mutants.generate import PACKAGE, Mutant, mutated, source

TREE = PACKAGE.parent
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", "dist", ".hypothesis")
Lines = dict[str, list[int]]
"""Line numbers by file, relative to zconsole."""


class Map:
    """Map of the lines that ran, in a file with one byte per line."""

    def __init__(self, file: Path) -> None:
        """Create ``file``, replacing an old one."""
        self._file, size = file, 0
        self._begins: dict[str, int] = {}
        for module in sorted(PACKAGE.rglob("*.py")):
            self._begins[module.relative_to(PACKAGE).as_posix()] = size
            size += module.read_text().count("\n") + 2
        file.write_bytes(bytes(size))
        file.chmod(0o666)  # some tests run as nobody

    def watch(self) -> None:
        """Record the lines of this process from now on."""
        lines.watch(str(self._file), self._begins)

    def build_into(self, tree: Path) -> None:
        """Make every process that imports zconsole from a copy record its lines."""
        with (tree / "zconsole" / "__init__.py").open("a") as module:
            module.write(
                f"\n_tool = {{'__name__': 'lines'}}\nwith open({lines.__file__!r}) as _file:\n"
                f"    exec(_file.read(), _tool)\n"
                f"_tool['watch']({str(self._file)!r}, {self._begins!r})\n"
            )

    def taken(self) -> Lines:
        """Return the lines recorded since the last call."""
        reached = self._file.read_bytes()
        with self._file.open("r+b") as file:  # keep its length: other processes have it mapped
            file.write(bytes(len(reached)))
        # Until this call, a line that was reported is not reported again.
        lines.again()
        ends = [*list(self._begins.values())[1:], len(reached)]
        found: Lines = {}
        for (name, begin), end in zip(self._begins.items(), ends, strict=True):
            if any(part := reached[begin:end]):
                found[name] = [at for at, byte in enumerate(part) if byte]
        return found


def copied(place: Path) -> Path:
    """Return a new copy of the tree, with the directory next to the tree that tests read."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(TREE, place / "main", symlinks=True, ignore=LEFT_OUT)
    if (beside := TREE.parent / "shared").exists():
        (place / "shared").symlink_to(beside.resolve())
    return place / "main"


@contextmanager
def planted(tree: Path, mutant: Mutant, mistaken: bool) -> Iterator[None]:
    """Give a copy the module with the mistake, or without it but in the same layout."""
    file = tree / "zconsole" / mutant.file
    module = mutated(mutant) if mistaken else ast.parse(source(mutant.module).read_text())
    try:
        _write(file, ast.unparse(module))
        yield
    finally:
        _write(file, source(mutant.module).read_text())


def _write(file: Path, text: str) -> None:
    """Replace a module and remove compiled versions, which might not be outdated by their date."""
    file.write_text(text)
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()


def inside(tree: Path, trial: Callable[[], Any], seconds: float) -> Any:
    """Return the result of a trial in a process that imports zconsole and tests from a copy."""

    def _moved() -> Any:
        os.chdir(tree)
        sys.path[:] = [str(tree), *(each for each in sys.path if each not in ("", str(TREE)))]
        # These came from the original tree, and must be imported from the copy.
        for name in [each for each in sys.modules if each.split(".")[0] in ("zconsole", "tests")]:
            del sys.modules[name]
        return trial()

    return forked(_moved, seconds)
