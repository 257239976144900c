"""Rebalance screens: directories, options, plan and job, on top of ``rebalance.backend``."""
