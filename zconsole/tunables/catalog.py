"""The tunables that matter for a resilver, scrub, rebuild or rebalance: ``share/tunables.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zconsole.pool.version import parse_version
from zconsole.tunables.tunable import Tunable
from zconsole.units import parse_size

TABLE = Path(__file__).parents[1] / "share" / "tunables.toml"


def _tunable(name: str, row: Mapping[str, Any]) -> Tunable:
    fields = {key: value for key, value in row.items() if key not in ("range", "defaults")}
    low, high = map(_number, row["range"])
    since = row.get("defaults", {}).items()
    defaults = tuple((parse_version(version), _number(value)) for version, value in since)
    return Tunable(name, low=low, high=high, defaults=defaults, **fields)


def _number(value: int | str) -> int:
    return value if isinstance(value, int) else parse_size(value) or 0


_ROWS = tomllib.loads(TABLE.read_text("utf-8"))

HISTORICAL: Mapping[str, Mapping[str, Any]] = _ROWS.pop("historical")
"""Names from old guides: what each was, and what stands for it ``now``."""

TUNABLES = tuple(_tunable(*row) for row in _ROWS.items())
"""Every known tunable, those one reaches for first at the top."""

BY_NAME = {tunable.name: tunable for tunable in TUNABLES}
