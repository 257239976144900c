"""How many files a job may have open at once."""

from __future__ import annotations

import resource

BATCH_FILES = 4000
A_FILE = 4
"""Descriptors a file of a batch may take."""
OPEN_DIRECTORIES = 256


def batch_files() -> int:
    """Files a batch may hold open; raises this process's own limit first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = BATCH_FILES * A_FILE + 2 * OPEN_DIRECTORIES
    if soft < wanted:
        soft = min(wanted, hard) if hard != resource.RLIM_INFINITY else wanted
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(BATCH_FILES, (soft - 2 * OPEN_DIRECTORIES) // A_FILE))
