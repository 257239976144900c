"""What clearing a pool's errors would erase, for the audit log."""

from __future__ import annotations

from typing import Any

from zconsole.pool.model import Pool


def evidence(pool: Pool) -> dict[str, Any]:
    """Counters of every vdev, the error list, the status message."""
    return {
        "pool": pool.name,
        "guid": pool.guid,
        "state": pool.state,
        "message": pool.message,
        "error_count": pool.error_count,
        "errors": None if pool.errors is None else list(pool.errors),
        "vdevs": [
            {
                "name": v.name,
                "guid": v.guid,
                "path": v.path,
                "state": v.state,
                "note": v.note,
                **v.errors._asdict(),
            }
            for v in pool.root.walk()
        ],
    }
