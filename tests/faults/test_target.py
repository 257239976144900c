"""On the way to a wanted spread: what is looked at must be all that the files before left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.harness import create, run, tree_of
from zconsole.rebalance.run import Runner
from zconsole.rebalance.settings import Limits


def originals_held(tree: Path) -> int:
    """Files of the tree that have no name left and are still open: their blocks are not free."""
    held = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            name = str(descriptor.readlink())
        except FileNotFoundError:
            continue
        held += name.startswith(str(tree)) and name.endswith("(deleted)")
    return held


def test_the_spread_is_looked_at_once_the_originals_are_gone(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree_of(area, 6, 9 << 20)
    held: list[int] = []
    monkeypatch.setattr(Runner, "_check_target", lambda runner: held.append(originals_held(root)))
    create(root, area / "job.db", limits=Limits(until_spread=0.05))
    run(area / "job.db")
    assert len(held) > 1
    assert not any(held)
