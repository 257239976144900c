"""Records with some of their fields changed."""

from __future__ import annotations

import dataclasses
from typing import Any


def replace(record: Any, **changes: Any) -> Any:
    """A dataclass or named tuple like ``record`` but for ``changes`` (3.13: ``copy.replace``)."""
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return dataclasses.replace(record, **changes)
    return record._replace(**changes)
