"""Scan and rebuild tunables: meanings, live values, presets, and restoring the originals."""
