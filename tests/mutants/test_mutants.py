"""Short version of both campaigns: known mistakes are caught, and the generator misses none."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.mutants import copies, model
from tests.mutants.campaign import PATIENCE, tried
from tests.mutants.copies import Map, copied, planted
from tests.mutants.equivalent import REASONS
from tests.mutants.forked import DiedError, HangsError, forked
from tests.mutants.generate import MODULES, Mutant, durable_calls, mutants, mutated, source
from tests.mutants.planted import table, turns
from tests.mutants.reached import first_failure
from tests.table import rows
from zconsole.rebalance.engine.swap import ConflictError

KNOWN = {
    "copy_engine.CopyPipeline._commit_intents:"
    " drop self.results.commit(intents, self._directory_times(self.leases.items))": "one file",
    "copy_engine.CopyPipeline.run: swap self._commit_intents() <> self._replace_all()": "one file",
    "copy_engine.CopyPipeline._make_durable: drop self.sync": "one file",
    "swap.Swapper._exchange_name: drop self.sys.exchange(fd, place.temp, name)": "one file",
    "recovery.Recovery.run: drop self.sync()": "holes",
}
"""Mutants that the model catches, and a workload that shows each."""


@cache
def _all() -> dict[str, Mutant]:
    return {each.identity: each for module in MODULES for each in mutants(module)}


@rows("identity", KNOWN)
def test_a_known_mutant_is_caught(identity: str) -> None:
    def _wrong() -> str:
        return model.wrong(model.rounds(3), [KNOWN[identity]], model.HANGS)

    what = tried(_wrong, PATIENCE, _all()[identity])
    assert what
    assert not what.startswith("died"), what


def test_without_a_mutant_nothing_is_wrong() -> None:
    def _wrong() -> str:
        return model.wrong(model.quick(), ["one file"], model.HANGS)

    assert tried(_wrong, PATIENCE, None) == ""


def test_every_mutant_has_a_name_of_its_own_and_can_be_compiled() -> None:
    found = [each for module in MODULES for each in mutants(module)]
    assert len(_all()) == len(found)
    assert len({each.operator for each in found}) == 6


@rows("module", MODULES)
def test_every_durable_call_is_dropped(module: str) -> None:
    """Each durable call, and each durable method passed on, is missing in some mutant."""
    tree = ast.parse(source(module).read_text())
    inside = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    calls = {(each.lineno, each.col_offset) for one in inside for each in durable_calls(one)}
    dropped = {each.position for each in mutants(module) if each.operator == "drop"}
    assert calls <= dropped


def test_what_counts_as_equivalent_is_there() -> None:
    assert REASONS.keys() <= _all().keys() | {row.mistake for row in table()}
    assert all(REASONS.values())


def test_a_mutant_without_its_super_can_be_planted() -> None:
    mutant = _all()["swap.ConflictError.__init__: drop super().__init__(why)"]
    assert tried(lambda: str(ConflictError("why")), PATIENCE, mutant) == "why"
    assert tried(lambda: "" if ConflictError().args else "none", PATIENCE, mutant) == "none"


def test_a_trial_that_others_kill_says_nothing() -> None:
    with pytest.raises(KeyboardInterrupt):
        forked(lambda: os.kill(os.getpid(), signal.SIGKILL), 10.0)


def test_a_mutant_that_hangs_is_ended() -> None:
    def _hangs() -> None:
        while True:
            pass

    with pytest.raises(HangsError):
        forked(_hangs, 0.2)


def test_a_mutant_that_raises_says_so() -> None:
    with pytest.raises(DiedError, match="ZeroDivisionError"):
        forked(lambda: 1 // 0, 10.0)


UNITS = {each.identity: each for each in mutants("units", wider=True)}
SIZE = "units.size: without first value is None or not math.isfinite(value)"


def test_each_wider_mutant_is_another_module_that_compiles() -> None:
    texts = {ast.unparse(mutated(each)) for each in UNITS.values()}
    assert len(texts) == len(UNITS) > 50
    for text in texts:
        compile(text, "units.py", "exec")


def test_a_seed_has_operators_and_functions_take_turns() -> None:
    drawn = turns(1, UNITS.values())[:10]
    assert max(Counter(each.operator for each in drawn).values()) < 4
    assert max(Counter(each.function for each in drawn).values()) < 4
    assert drawn == turns(1, reversed(UNITS.values()))[:10]
    assert drawn != turns(2, UNITS.values())[:10]


def _said(tree: Path) -> str:
    code = "from zconsole.units import size; print(size(None))"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False).stdout


def test_processes_of_a_copy_note_their_lines_and_make_its_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "LEFT_OUT", shutil.ignore_patterns(".*", "tests"))
    tree, lines = copied(tmp_path / "copy"), Map(tmp_path / "map")
    lines.build_into(tree)
    lines.taken()
    right = _said(tree)
    reached = lines.taken()["units.py"]
    assert UNITS[SIZE].line in reached
    assert len(reached) < source("units").read_text().count("\n") / 2
    with planted(tree, UNITS[SIZE], mistaken=True):
        assert _said(tree) == ""
    with planted(tree, UNITS[SIZE], mistaken=False):
        assert _said(tree) == right
    assert _said(tree) == right != ""


def test_a_test_that_fails_without_the_mistake_says_nothing() -> None:
    fails = {"chance": (True, True), "sees": (True, False), "passes": (False, False)}

    def _attempt(tests: Mapping[str, float], mistaken: bool) -> str:
        return next((test for test in tests if fails[test][not mistaken]), "")

    tests = dict.fromkeys(["passes", "chance", "sees"], 1.0)
    assert first_failure(tests, _attempt) == "sees"
    assert first_failure({"chance": 1.0, "passes": 1.0}, _attempt) == ""
    alone = {test: first_failure({test: 1.0}, _attempt) for test in fails}
    assert alone == {"chance": "", "sees": "sees", "passes": ""}


def test_what_ends_all_tests_counts_where_it_does_not_without_the_mistake() -> None:
    assert first_failure({"one": 1.0}, lambda _, mistaken: "hangs" * mistaken) == "hangs"
    assert first_failure({"one": 1.0}, lambda *_: "hangs") == ""
