"""Predicts when a scan ends: its course so far, windowed rates, and an estimate with a range."""
