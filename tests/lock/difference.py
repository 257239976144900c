"""Differences between two texts of a case, formatted for people."""

from __future__ import annotations

import difflib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from tests.lock import kept
from tests.lock.case import RAISED

TREE = Path(__file__).parents[2]
DIGEST = "sha256 "
LINES = 40
"""Lines shown of one difference."""
PATIENCE = 300.0
"""Seconds that a repeated look at cases may take."""


def hidden(before: str | None, after: str | None) -> bool:
    """Return whether only digests differ, so that both sides must be produced again unabridged."""
    return before is not None and after is not None and _bare(before) == _bare(after)


def _bare(text: str) -> list[str]:
    return [line.partition(DIGEST)[0] for line in text.split("\n")]


class Again:
    """The differences in a part's cases; some cases are run again, unabridged."""

    def __init__(self, part: str, names: Sequence[str]) -> None:
        self._part = part
        self._before: dict[str, str] = {}
        self._after: dict[str, str] = {}
        self._why = ""
        if names:
            places = [f"{part}/{name}" for name in names]
            commit = kept.commit(part)
            tree, self._why = _checkout(commit)
            if tree is not None:
                self._before, self._after = _shown(tree, places), _shown(TREE, places)
                self._why = f"the tree of {commit[:12]} does not show it"

    def lines(self, name: str, before: str | None, after: str | None) -> Iterator[str]:
        """Yield the lines that describe a difference."""
        if before is None or after is None:
            yield "is new" if before is None else "is kept, but no longer seen"
            return
        if after.startswith(RAISED):
            yield from (f"+ {line}" for line in after.splitlines()[-LINES:])
            return
        if not hidden(before, after):
            yield from shown_lines(_without_digests(before, after))
            return
        place = f"{self._part}/{name}"
        old, new = self._before.get(place, ""), self._after.get(place, "")
        if not old or not new:
            yield f"only what is kept as digests differs, and {self._why}"
        elif _bare(old) == _bare(new):
            yield "the same values in another order of keys, or wider than rounding shows"
        else:
            yield from shown_lines(_without_digests(old, new))


def _without_digests(before: str, after: str) -> tuple[list[str], list[str]]:
    """Return both texts without digests, which add nothing next to lines that differ."""
    old, new = before.split("\n"), after.split("\n")
    return [line.partition(DIGEST)[0] for line in old], [line.partition(DIGEST)[0] for line in new]


def shown_lines(texts: tuple[Sequence[str], Sequence[str]]) -> Iterator[str]:
    """Yield the lines that differ, below the less indented lines that they belong to."""
    before, after = texts
    told: list[str] = []
    count = 0
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            continue
        above = _above(before, a) if a < b else _above(after, c)
        changed = [*(f"- {line}" for line in before[a:b]), *(f"+ {line}" for line in after[c:d])]
        for line in (*(f"  {line}" for line in above if line not in told), *changed):
            count += 1
            if count <= LINES:
                yield line
        told = above
    if count > LINES:
        yield f"… and {count - LINES} lines more"


def _above(lines: Sequence[str], at: int) -> list[str]:
    """Return the lines of which this one is an indented descendant, outermost first."""
    found: list[str] = []
    indent = _indent(lines[at])
    for line in reversed(lines[:at]):
        if line.strip() and _indent(line) < indent:
            found.append(line)
            indent = _indent(line)
        if not indent:
            break
    return found[::-1]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _shown(tree: Path, places: Sequence[str]) -> dict[str, str]:
    """Return cases unabridged, as a tree produces them; empty if it cannot."""
    command = [sys.executable, "-m", "tests.lock", "show", *places]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, timeout=PATIENCE, check=True)
    except subprocess.SubprocessError:
        return {}
    return kept.split(done.stdout.decode("utf-8", "surrogateescape"))


@cache
def _checkout(commit: str) -> tuple[Path | None, str]:
    """Return a tree of a commit, kept until this process ends; else None and the reason."""
    if not commit:
        return None, "no commit is noted that they could be seen again in"
    try:
        command = ["git", "archive", commit]
        done = subprocess.run(command, cwd=TREE, capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None, f"git has no commit {commit[:12]} here, which they were seen in"
    holder = _HOLDERS.setdefault(commit, tempfile.TemporaryDirectory(prefix="zconsole-lock-"))
    tree = Path(holder.name) / "main"
    tree.mkdir()
    subprocess.run(["tar", "-x", "-C", str(tree)], input=done.stdout, check=True)
    if (shared := TREE.parent / "shared").exists():
        (tree.parent / "shared").symlink_to(shared.resolve())
    # If that tree has an older lock or none, use today's cases: they don't depend on its internals.
    if not (tree / "tests/lock/kept").exists():
        shutil.copytree(TREE / "tests/lock", tree / "tests/lock", dirs_exist_ok=True)
    return tree, ""


_HOLDERS: dict[str, tempfile.TemporaryDirectory[str]] = {}
