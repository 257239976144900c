"""Predicts when a scan ends: its course so far, windowed rates, and an estimate with a range.

The docstring of ``estimate.py`` explains all of it, with the formulas.
"""
