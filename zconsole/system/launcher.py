"""How this program starts further processes of itself: helpers, guards, jobs."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE_ROOT = Path(__file__).resolve().parents[2]
"""The directory that holds this very zconsole: a checkout, site-packages, an unpacked archive."""

_START = """\
import sys
sys.path.insert(0, {root!r})
import zconsole
sys.path.append(sys.path.pop(0))
import runpy
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""
"""What is beside the package, as in site-packages, comes after Python's own modules."""


def own(module: str, *words: str) -> tuple[str, ...]:
    """The command that runs a module of this very zconsole, as ``python -m`` would.

    Python runs isolated (-I): it minds neither its variables in the environment, which ``sudo -E``
    hands to root, nor modules in the working directory.
    """
    start = _START.format(root=str(PACKAGE_ROOT), module=module)
    return (sys.executable, "-Ic", start, *words)
