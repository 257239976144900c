"""Rebalance from the console: directories, plan, job; over the seam of ``rebalance.backend``."""
