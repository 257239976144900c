"""Seeing the cases of a part, and telling how they differ from what is kept."""

from __future__ import annotations

import atexit
import difflib
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

from tests.lock import kept, meant
from tests.lock.case import Case

PARTS = ("data", "libzfs", "screens", "plans", "state")
TREE = Path(__file__).parents[2]
DRAW = 10.0
"""Seconds of a processor that the short draw of a part takes."""
SHOWN = 60
"""Lines of a difference that are printed."""


def cases(part: str) -> list[Case]:
    """Return all cases of a part: the module of its name makes them."""
    return list(import_module(f"tests.lock.{part}").cases())


def drawn(chosen: Iterable[Case], seconds: float = DRAW) -> list[Case]:
    """Return every nth case by name, so many that they take about that long: always the same."""
    ordered = sorted(chosen, key=lambda case: case.name)
    return ordered[:: math.ceil(sum(case.cost for case in ordered) / seconds) or 1]


_CASES: dict[str, dict[str, Case]] = {}


def _see(place: tuple[str, str]) -> str:
    """See one case, in a process of the pool."""
    part, name = place
    if part not in _CASES:
        _CASES[part] = {case.name: case for case in cases(part)}
    return _CASES[part][name].see(False)


def seen(part: str, chosen: Sequence[Case], jobs: int) -> dict[str, str]:
    """See cases side by side; returns their texts by name."""
    ordered = sorted(chosen, key=lambda case: -case.cost)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        texts = pool.map(_see, [(part, case.name) for case in ordered])
        return {case.name: text for case, text in zip(ordered, texts, strict=True)}


def check(part: str, texts: Mapping[str, str], all_seen: bool = True) -> int:
    """Print each difference from what is kept; returns how many nobody meant."""
    old, lines, failed = kept.read(part), meant.read(), 0
    for name in sorted(old.keys() | texts.keys() if all_seen else texts.keys()):
        if old.get(name) == texts.get(name):
            continue
        reason = meant.reason(lines, part, name)
        failed += not reason
        print(f"\n{part}/{name}: {reason or 'differs'}")
        if not reason:
            before, after = old.get(name), texts.get(name)
            print("\n".join(difference(f"{part}/{name}", before, after)))
    return failed


def difference(place: str, before: str | None, after: str | None) -> list[str]:
    """Return the lines that differ, as a person reads them.

    Where only digests of them were kept, both sides are made again: the old one by the commit that
    `make` noted.
    """
    if before is not None and after is not None and "\nsha256 " in before:
        before, after = _shown(place, _noted_tree()) or before, _shown(place, TREE) or after
    old, new = (before or "").split("\n"), (after or "").split("\n")
    lines = list(difflib.unified_diff(old, new, "kept", "now", lineterm="", n=2))
    for at, line in enumerate(lines):
        if found := re.match(r"@@ -\d+(?:,\d+)? \+(\d+)", line):
            steps = [step.split(" ", 2)[2] for step in new[: int(found[1])] if _is_step(step)]
            lines[at] = f"{line} {' '.join(steps)}".rstrip()
    more = len(lines) - SHOWN
    return lines[:SHOWN] + ([f"… {more} more lines"] if more > 0 else [])


def _is_step(line: str) -> bool:
    """Tell whether a line is the head of a step: its number and what was done, "> 7 Enter"."""
    return bool(re.match(r"> \d+ \S", line))


def _shown(place: str, tree: Path | None) -> str:
    """Return a case as a tree sees it, whole; empty where it cannot."""
    if tree is None:
        return ""
    command = [sys.executable, "-m", "tests.lock", "show", place]
    done = subprocess.run(command, cwd=tree, capture_output=True, check=False)
    return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")


@cache
def _noted_tree() -> Path | None:
    """Return a checkout of the commit that the newest `make` noted; None where git lacks it."""
    commit = (kept.KEPT / "commit").read_text().strip()
    tree = Path(tempfile.mkdtemp(prefix="zconsole-lock-")) / "main"
    shared = TREE.parent / "shared"
    command = ["git", "worktree", "add", "--detach", "--quiet", str(tree), commit]
    if subprocess.run(command, cwd=TREE, capture_output=True, check=False).returncode:
        return None
    atexit.register(subprocess.run, ["git", "worktree", "remove", "-f", str(tree)], cwd=TREE)
    if shared.exists():
        (tree.parent / "shared").symlink_to(shared)
    return tree
