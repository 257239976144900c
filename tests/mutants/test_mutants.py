"""The short version of `.ci/mutants`: known mistakes are caught, and the generator misses none."""

from __future__ import annotations

import ast
import os
import signal

import pytest

from tests.mutants import model
from tests.mutants.campaign import PATIENCE, tried
from tests.mutants.equivalent import REASONS
from tests.mutants.forked import DiedError, HangsError, forked
from tests.mutants.generate import MODULES, Mutant, durable_calls, mutants, source
from zconsole.rebalance.engine.swap import ConflictError

KNOWN = {
    "copy_engine.CopyPipeline._commit_intents:"
    " drop self.results.commit(intents, self._begun(self.leases.items))": "one file",
    "copy_engine.CopyPipeline.run: swap self._commit_intents() <> self._replace_all()": "one file",
    "copy_engine.CopyPipeline._make_durable: drop self.sync": "one file",
    "swap.Swapper._exchange_name: drop self.sys.exchange(fd, place.temp, name)": "one file",
    "recovery.Recovery.run: drop self.sync()": "holes",
}
"""Mutants that the model catches, and a workload that shows each."""


def _all() -> dict[str, Mutant]:
    return {each.identity: each for module in MODULES for each in mutants(module)}


@pytest.mark.parametrize("identity", KNOWN)
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
    assert len({each.identity for each in found}) == len(found)
    assert len({each.operator for each in found}) == 6


@pytest.mark.parametrize("module", MODULES)
def test_every_durable_call_is_dropped(module: str) -> None:
    """Each call in a function, and each method handed over that lasts, is gone in some mutant."""
    tree = ast.parse(source(module).read_text())
    inside = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    calls = {(each.lineno, each.col_offset) for one in inside for each in durable_calls(one)}
    dropped = {each.position for each in mutants(module) if each.operator == "drop"}
    assert calls <= dropped


def test_what_counts_as_equivalent_is_there() -> None:
    assert REASONS.keys() <= _all().keys()
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
