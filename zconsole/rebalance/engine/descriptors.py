"""Limits on the number of files that a job may have open at once."""

from __future__ import annotations

import resource

BATCH_FILES = 4000
"""Most files of a batch."""
A_FILE = 3
"""Descriptors that a file may take: original, copy, and an original of the previous batch."""
OPEN_DIRECTORIES = 256
"""More open directories than this are closed before the next file is looked at."""
OTHERS = 2 * OPEN_DIRECTORIES
"""Descriptors kept free for directories, locks and the journal."""
MOST_DIRECTORIES = 4000
"""Most directories that a batch may hold open."""
KEPT = OPEN_DIRECTORIES + 64
"""Descriptors that belong to no batch: locks, the journal, what is read in /proc."""


def raise_limit() -> int:
    """Raise this process's limit on open files to what a job needs; return what was granted.

    A walk, too, keeps a descriptor open for each level of depth.
    """
    return _raised(BATCH_FILES * A_FILE + OTHERS)


def batch_files() -> int:
    """Return how many files a batch may hold open; raises this process's own limit first."""
    limit = raise_limit()
    return max(1, min(BATCH_FILES, (limit - OTHERS) // A_FILE))


def batch_directories(files: int) -> int:
    """Return how many directories a batch of so many files may hold open; raises the limit, too."""
    limit = _raised(files * A_FILE + KEPT + MOST_DIRECTORIES)
    return max(1, min(MOST_DIRECTORIES, limit - files * A_FILE - KEPT))


def _raised(wanted: int) -> int:
    """Raise the limit on open files as near to ``wanted`` as permitted; root has no ceiling."""
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
