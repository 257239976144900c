"""Moves files: copies and exchanges or rewrites them, a batch at a time, and loses none."""
