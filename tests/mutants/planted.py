"""`python -m tests.mutants planted`: mistakes all over zconsole, which suite or lock must catch.

The seed chooses them: in each package some, of all operators in turn. Those of the table stay while
the code has them; others take the places of those it has no more. They stand in a copy of the tree
on the disk, so that every process that a test begins has them, too. The first test that fails
counts, and the first case of the lock that differs, of those that run a line of what is changed.
Never seen this way: what only a virtual machine runs, code of modules outside functions, and what
runs in a process that may not write the map of lines (another user, its own mount namespace).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path

from tests import proof
from tests.mutants.copies import copied, inside, planted
from tests.mutants.equivalent import REASONS
from tests.mutants.generate import PACKAGE, Mutant, mutants
from tests.mutants.reached import (
    LOCK,
    answer,
    failing,
    files_of,
    first_failure,
    limit,
    quietly,
    recorded,
    side_by_side,
    within,
)

NUMBER, LEAST = 120, 3
"""Mistakes per seed, and the least number per package."""
SUITE = files_of(
    "tests", but=("tests/vm/", "tests/mutants/", "tests/lock/", "tests/faults/test_kill.py")
)
TABLE = Path(__file__).with_name("planted.tsv")
NONE, PART = "-", "- in part"
"""Results: no test that reaches the mistake notices it; none of the tests that were run does."""
ALONE = 10.0
"""Seconds allowed for the test that has caught the mistake before."""
NOTHING = (NONE, PART)
HEADS = ("package", "mistakes", "suite", "lock alone", "neither", "equivalent", "left", "lock")


@dataclass(slots=True)
class Row:
    """One mistake, and the first test and case that noticed it; empty if it was not tried."""

    seed: str
    package: str
    mistake: str
    suite: str = ""
    lock: str = ""

    @property
    def kind(self) -> str:
        """Return the column in which it is counted."""
        if self.suite not in ("", *NOTHING):
            return "suite"
        if self.lock not in ("", *NOTHING):
            return "lock alone"
        if self.mistake in REASONS:
            return "equivalent"
        return "neither" if self.suite and self.lock else "left"


def main(words: Sequence[str]) -> int:
    """Try, continue or show the mistakes of a seed."""
    arguments = _parser().parse_args(words)
    seed = str(arguments.seed)
    old = {row.mistake: row for row in table() if row.seed == seed}
    others = [row for row in table() if row.seed != seed]
    chosen = drawn(arguments.seed, old)
    mine = [old.pop(each.identity, Row(seed, _package(each), each.identity)) for each in chosen]
    for row in old.values():
        print(f"gone with its code: {row.mistake}")
    if arguments.survivors:
        for row in mine:
            if arguments.only in row.mistake:
                row.suite = "" if row.suite in NOTHING else row.suite
                row.lock = "" if row.lock in NOTHING else row.lock
    if not arguments.show:
        tried = [mutant for mutant in chosen if arguments.only in mutant.identity]
        _try(tried, mine, others, arguments)
    print(proof.table(summary(mine)))
    for row in mine:
        if arguments.what or row.kind in ("neither", "lock alone"):
            print(f"{row.kind}: {row.mistake}\n  {row.suite}  {row.lock}")
    return int(any(row.kind == "neither" for row in mine))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants planted", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="chooses the mistakes (%(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="mistakes with this in them")
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="of tests for a mistake (%(default)s)"
    )
    parser.add_argument("--survivors", action="store_true", help="try again what nothing caught")
    parser.add_argument(
        "--again", action="store_true", help="try all again, first with what caught them"
    )
    parser.add_argument("--show", action="store_true", help="print the table, try nothing")
    parser.add_argument("--what", action="store_true", help="print what caught each mistake")
    jobs = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=jobs, help="processes (%(default)s)")
    return parser


def _package(mutant: Mutant) -> str:
    return mutant.module.rpartition(".")[0].partition(".")[0] or "zconsole"


def drawn(seed: int, kept: Container[str] = ()) -> list[Mutant]:
    """Return the mistakes of a seed: first those kept, by identity, then new ones per package."""
    packages: dict[str, list[Mutant]] = {}
    sizes: Counter[str] = Counter()
    for file in sorted(PACKAGE.rglob("*.py")):
        made = mutants(".".join(file.relative_to(PACKAGE).with_suffix("").parts), wider=True)
        if made:
            packages.setdefault(_package(made[0]), []).extend(made)
            sizes[_package(made[0])] += file.read_text().count("\n")
    rest = NUMBER - LEAST * len(sizes)
    exact = {package: rest * size / sizes.total() for package, size in sizes.items()}
    quotas = Counter({package: LEAST + int(share) for package, share in exact.items()})
    larger = sorted(exact, key=lambda package: -(exact[package] % 1))
    quotas.update(larger[: NUMBER - quotas.total()])
    found: list[Mutant] = []
    for package, made in packages.items():
        ranked = turns(seed, made)
        stay = [each for each in ranked if each.identity in kept]
        new = [each for each in ranked if each.identity not in kept]
        found += stay + new[: max(0, quotas[package] - len(stay))]
    return found


def turns(seed: int, made: Iterable[Mutant]) -> list[Mutant]:
    """Sort mistakes by seed, so that operators, and functions, take turns."""

    def _rank(text: str) -> bytes:
        return hashlib.sha256(f"{seed} {text}".encode()).digest()

    counts: Counter[str] = Counter()
    ranked = []
    for mutant in sorted(made, key=lambda each: _rank(each.identity)):
        counts.update((mutant.operator, mutant.function))
        turn = max(counts[mutant.operator], counts[mutant.function])
        ranked.append((turn, _rank(mutant.module + mutant.operator), mutant))
    return [mutant for _, _, mutant in sorted(ranked, key=lambda each: each[:2])]


def table() -> list[Row]:
    """Return all kept rows."""
    return [Row(*line.split("\t")) for line in TABLE.read_text().splitlines()[1:]]


def _keep(rows: Iterable[Row]) -> None:
    lines = ["\t".join(Row.__slots__), *("\t".join(astuple(row)) for row in rows)]
    draft = TABLE.with_suffix(f".{os.getpid()}")
    draft.write_text("\n".join(lines) + "\n")
    draft.replace(TABLE)


def summary(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return how many mistakes the suite and the lock caught, by package and in total."""
    found = [HEADS]
    for package in (*dict.fromkeys(row.package for row in rows), "all"):
        those = [row for row in rows if package in (row.package, "all")]
        counts = Counter(row.kind for row in those)
        lock = sum(row.lock not in ("", *NOTHING) for row in those)
        kinds = (str(counts[kind]) for kind in HEADS[2:-1])
        found.append((package, str(len(those)), *kinds, str(lock)))
    return found


def _try(
    chosen: Sequence[Mutant], mine: Sequence[Row], others: Sequence[Row], how: argparse.Namespace
) -> None:
    """Try new mistakes with the suite, and with the lock those that the suite has not caught.

    Rows are saved as results arrive. With ``--again``, the test that caught a mistake before is
    tried first, alone.
    """
    rows = {row.mistake: row for row in mine}
    place = proof.cache("mutants")
    place.mkdir(parents=True, exist_ok=True)

    def _each(given: Sequence[Given]) -> None:
        with tempfile.TemporaryDirectory(dir=place) as area:
            for mistake, what in side_by_side(how.jobs, partial(_tried, area), given):
                setattr(rows[mistake], by, what)
                _keep((*others, *mine))
                print(f"{by}: {what}: {mistake}", flush=True)

    for by, files in (("suite", SUITE), ("lock", LOCK)):
        done = ("equivalent", "suite")[: 1 + (by == "lock")]
        due = [each for each in chosen if rows[each.identity].kind not in done]
        told = {each: getattr(rows[each.identity], by) for each in due}
        if how.again:
            _each([(each, {what: ALONE}, "") for each, what in told.items() if "::" in what])
            told = {each: what if "::" in what else "" for each, what in told.items()}
        left = [each for each in due if not (told[each] and getattr(rows[each.identity], by))]
        if left:
            _each(reaching(left, files, how.seconds, how.jobs))


Given = tuple[Mutant, dict[str, float], str]
"""A mistake, tests with their seconds, and the result if none of them fails."""


def reaching(
    chosen: Sequence[Mutant], files: Sequence[str], seconds: float, jobs: int
) -> list[Given]:
    """Return each mistake with the tests that reach it, the nearest first, up to ``seconds``."""
    near: dict[str, list[tuple[int, float, str]]] = {mutant.identity: [] for mutant in chosen}
    for each in recorded(files, jobs):
        for mutant in chosen:
            if each.reaches(mutant):
                near[mutant.identity].append((each.width, each.seconds, each.test))
    given = []
    for mutant in chosen:
        tests = {test: takes for _, takes, test in sorted(near[mutant.identity])}
        some = within(seconds, tests)
        given.append((mutant, some, NONE if len(some) == len(tests) else PART))
    return given


@cache
def _own_copy(area: str) -> Path:
    """Return this process's copy of the tree; imports what the trials need, once."""
    quietly(["--collect-only", "tests/test_proof.py"], object())
    import_module("textual.app")
    return copied(Path(area) / str(os.getpid()))


def _tried(area: str, given: Given) -> tuple[str, str]:
    """Return a mistake, and the first test that fails with it."""
    mutant, tests, none = given
    tree = _own_copy(area)

    def _attempt(some: Mapping[str, float], mistaken: bool) -> str:
        with planted(tree, mutant, mistaken):
            return answer(lambda: inside(tree, lambda: failing(some), limit(some)))

    return mutant.identity, first_failure(tests, _attempt, PART).partition("\n")[0] or none
