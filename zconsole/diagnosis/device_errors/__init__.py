"""Errors with their time and likely cause: enough to tell a cable from a disk."""
