"""Rebalance: rewrites files so that their blocks spread over all vdevs, without losing any."""
