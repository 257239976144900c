"""``zconsole rebalance``: see zconsole.rebalance.cli."""

from zconsole.rebalance.cli import configure, run

__all__ = ["configure", "run"]
