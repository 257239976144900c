"""What is remembered of a pool over time: rates, scans, changes; and kept between runs."""

from __future__ import annotations

from zconsole.history.pool import PoolHistory

__all__ = ["PoolHistory"]
