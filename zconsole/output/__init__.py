"""Frames as JSON and as plain text."""
