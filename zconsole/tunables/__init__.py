"""Scan and rebuild tunables: what they mean, their live values, presets, and putting them back."""
