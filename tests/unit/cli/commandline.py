"""The command line with saved output, as a separate process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

STATUS = """\
  pool: tank
 state: DEGRADED
status: One or more devices has been removed by the administrator.
  scan: scrub repaired 0B in 00:00:04 with 0 errors on Fri Nov 20 09:24:46 2026
config:

\tNAME        STATE     READ WRITE CKSUM
\ttank        DEGRADED     0     0     0
\t  mirror-0  DEGRADED     0     0     0
\t    sda     ONLINE       0     0     0
\t    sdb     REMOVED      0     0     0

errors: No known data errors
"""
PROGRAM = [sys.executable, "-m", "zconsole"]


def saved_in(directory: Path, text: str = STATUS) -> str:
    """Return the path of a new file with saved output."""
    path = directory / "status.txt"
    path.write_text(text)
    return str(path)


def run(*words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the program; its output is captured unless ``options`` redirect it."""
    ways = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([*PROGRAM, *words], check=False, **ways)
