"""Simulated twins of what acts: they satisfy the protocols of the real ones."""
