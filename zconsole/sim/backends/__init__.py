"""Simulated backends: they satisfy the protocols of the real ones."""
