"""Errors with their time and their likely cause: enough to tell a cable from a disk."""
