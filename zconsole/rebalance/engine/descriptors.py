"""How many files a job may have open at once."""

from __future__ import annotations

import resource

BATCH_FILES = 4000
A_FILE = 3
"""Descriptors a file of a batch may take: original, copy, and an original of the batch before."""
OPEN_DIRECTORIES = 256
OTHERS = 2 * OPEN_DIRECTORIES
MOST_DIRECTORIES = 4000
"""Directories a batch may hold open beside what is open already, where there is no lower limit."""
KEPT = OPEN_DIRECTORIES + 64
"""Descriptors that are not of a batch: directories of the one before, locks, the journal."""


def raise_limit() -> int:
    """Raise this process's limit on open files to what a job takes; returns what it got.

    A walk, too, opens a descriptor a level of depth.
    """
    return _raised(BATCH_FILES * A_FILE + OTHERS)


def batch_files() -> int:
    """Files a batch may hold open; raises this process's own limit first."""
    limit = raise_limit()
    return max(1, min(BATCH_FILES, (limit - OTHERS) // A_FILE))


def batch_directories(files: int) -> int:
    """Directories a batch of so many files may hold open; raises this process's own limit first."""
    limit = _raised(files * A_FILE + KEPT + MOST_DIRECTORIES)
    return max(1, min(MOST_DIRECTORIES, limit - files * A_FILE - KEPT))


def _raised(wanted: int) -> int:
    """The limit on open files, as near to ``wanted`` as permitted; root's has no ceiling."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted or soft == resource.RLIM_INFINITY:
        return wanted
    unlimited = hard == resource.RLIM_INFINITY
    try:
        ceiling = hard if unlimited else max(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, ceiling))
    except (ValueError, PermissionError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
