"""Bottleneck of a running scan, and its estimated maximum rate, judged from samples of a pool."""
