"""Exact statistics from libzfs: a helper process reads them, so that it can be abandoned."""
