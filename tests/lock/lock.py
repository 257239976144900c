"""Run the cases of a part, and compare the results with the kept ones."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

from tests.lock import difference, meant
from tests.lock.case import RAISED, Case, digest

PARTS = ("data", "libzfs", "screens", "plans", "state")
DRAW = 1.0
"""CPU seconds that the short draw of a part takes."""
SHOWN = 20
"""Differences shown with their lines; of the others, only the names."""


def cases(part: str, prefix: str = "") -> list[Case]:
    """Return the cases of a part whose names start with a prefix, as its module makes them."""
    return [case for case in _module(part).cases() if case.name.startswith(prefix)]


def missing(part: str) -> tuple[str, ...]:
    """Return the prefixes of cases that read something that this machine does not have.

    A part's module may name such directories in ``BESIDE``.
    """
    beside: Mapping[str, Path] = getattr(_module(part), "BESIDE", {})
    return tuple(prefix for prefix, directory in beside.items() if not directory.exists())


def _module(part: str) -> ModuleType:
    return import_module(f"tests.lock.{part}")


def drawn(chosen: Iterable[Case], seconds: float = DRAW) -> list[Case]:
    """Return cases of all kinds that take about ``seconds`` together: always the same ones."""
    found, left = [], seconds
    for case in sorted(chosen, key=lambda case: digest(case.name)):
        if case.cost <= left:
            found.append(case)
            left -= case.cost
    return found


@cache
def _by_name(part: str) -> dict[str, Case]:
    return {case.name: case for case in cases(part)}


def see(part: str, name: str, whole: bool = False) -> str:
    """Return the text of one case; if it raises, its traceback."""
    try:
        return _by_name(part)[name].see(whole)
    except Exception:
        return RAISED + traceback.format_exc().strip()


def _see(place: tuple[str, str, bool]) -> str:
    return see(*place)


def seen(part: str, names: Sequence[str], jobs: int, whole: bool = False) -> dict[str, str]:
    """Return texts by name, seen in parallel in new processes that have imported nothing."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        texts = pool.map(_see, [(part, name, whole) for name in names])
        return dict(zip(names, texts, strict=True))


def dearest_first(chosen: Iterable[Case]) -> list[str]:
    """Return the names of cases, most expensive first, which keeps all processes busy."""
    return [case.name for case in sorted(chosen, key=lambda case: (-case.cost, case.name))]


@dataclass(slots=True)
class Checked:
    """Result of a check."""

    cases: int = 0
    meant: int = 0
    failed: list[str] = field(default_factory=list)
    used: set[meant.Meant] = field(default_factory=set)


def check(
    part: str, texts: Mapping[str, str], old: Mapping[str, str], say: Callable[[str], None] = print
) -> Checked:
    """Report each difference from the kept texts, and whether a line of meant.toml allows it."""
    found, lines = Checked(len(texts)), meant.read()
    for name in sorted(old.keys() | texts.keys()):
        if old.get(name) == texts.get(name):
            continue
        text = texts.get(name)
        lost = text is None or text.startswith(RAISED)
        line = None if lost else meant.of(lines, part, name)  # a missing case is never intended
        if line is None:
            found.failed.append(name)
        else:
            found.used.add(line)
            found.meant += 1
            say(f"{part}/{name}: meant by issue {line.issue}: {line.why}")
    shown = found.failed[:SHOWN]
    again = difference.Again(
        part, [n for n in shown if difference.hidden(old.get(n), texts.get(n))]
    )
    for name in shown:
        say(f"\n{part}/{name}:")
        for text in again.lines(name, old.get(name), texts.get(name)):
            say(text)
    for name in found.failed[SHOWN:]:
        say(f"{part}/{name}: differs, too")
    return found
