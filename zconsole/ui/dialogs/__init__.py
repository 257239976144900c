"""Screens over the main one: to read, to pick, to ask and to confirm."""
