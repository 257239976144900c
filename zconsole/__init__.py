"""zconsole: the terminal console for a ZFS resilver, scrub or rebalance."""

__version__ = "0.1.0"
