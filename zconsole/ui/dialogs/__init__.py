"""Screens on top of the main one: to read, to pick, to ask and to confirm."""
