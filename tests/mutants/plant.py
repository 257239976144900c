"""Plant a mutant in this process by replacing the code of its function.

Nothing is imported again, so classes, and names that other modules have imported, stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

from tests.mutants.generate import Mutant, mutated, source


def plant(mutant: Mutant) -> None:
    """Make the mistake in this process from now on. Call only in a process that ends soon."""
    owner: Any = import_module(f"zconsole.{mutant.module}")
    for name in mutant.function.split("."):
        owner = vars(owner)[name]
    code = compile(mutated(mutant), str(source(mutant.module)), "exec", dont_inherit=True)
    found = [each for each in _codes(code) if each.co_qualname == mutant.function]
    assert len(found) == 1, mutant.identity
    _function(owner).__code__ = found[0]


def _function(owner: Any) -> FunctionType:
    """Return the function behind a method, a property or a context manager."""
    if isinstance(owner, property):
        return _function(owner.fget)
    if isinstance(owner, staticmethod | classmethod):
        return _function(owner.__func__)
    found = getattr(owner, "__wrapped__", owner)
    assert isinstance(found, FunctionType)
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
