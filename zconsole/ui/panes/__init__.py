"""Panes of the main screen, one module each, and the parts they share."""
