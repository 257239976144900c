"""The source code of the package, for tests that read it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "zconsole"


@cache
def modules() -> tuple[str, ...]:
    """Return every module, as its path in the package."""
    return tuple(sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")))


def tree_of(module: str) -> ast.Module:
    """Parse a module, without caching: all trees together would be a hundred megabytes."""
    return ast.parse((PACKAGE / module).read_text())
