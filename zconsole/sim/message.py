"""The ``status:`` and ``action:`` texts zpool prints for a state (print_status_reason)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zconsole.sim.disk import CANT_OPEN, FAULTED, OFFLINE, REMOVED
from zconsole.sim.state import PoolState

TABLE = Path(__file__).parents[1] / "share" / "status_messages.toml"
_TEXTS: Mapping[str, Mapping[str, str]] = tomllib.loads(TABLE.read_text("utf-8"))
_URL = "https://openzfs.github.io/openzfs-docs/msg/"


def message(pool: PoolState) -> dict[str, Any]:
    """The ``message`` of the raw form: status, action, see and names of damaged files."""
    texts = dict(_TEXTS.get(_reason(pool), {}))
    if "see" in texts:
        texts["see"] = _URL + texts["see"]
    return {"errors": list(pool.damaged), **texts}


def _reason(pool: PoolState) -> str:
    """The first that applies, in the order of check_status (lib/libzfs/libzfs_status.c)."""
    leaves = [leaf for top in pool.tops for leaf in top.leaves()]
    states = {leaf.state for leaf in leaves}
    if pool.suspended:
        return "suspended"
    if pool.resilvering or pool.rebuilding:
        return "resilvering"
    if int(pool.data_errors):
        return "corrupt"
    words = {FAULTED: "faulted", CANT_OPEN: "missing", OFFLINE: "offline", REMOVED: "removed"}
    if found := next((word for state, word in words.items() if state in states), None):
        return found
    if any(int(x.reads.errors) + int(x.writes.errors) + int(x.cksum_errors) for x in leaves):
        return "errors"
    return ""
