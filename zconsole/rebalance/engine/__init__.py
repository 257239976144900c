"""Moves files without losing any: copies and exchanges them, or has ZFS rewrite them in place."""
