"""Keeping watch: what is worth waking somebody for, and how they are told."""
