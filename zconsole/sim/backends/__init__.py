"""Simulated backends that implement the protocols of the real ones."""
