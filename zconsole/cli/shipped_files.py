"""Files of the package that an operator installs: units of systemd, the dashboard, alert rules."""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

FILES = {
    "dashboard": "grafana-dashboard.json",
    "rules": "prometheus-rules.yml",
    "export-unit": "zconsole-export.service",
    "watch-unit": "zconsole-watch@.service",
    "rebalance-unit": "zconsole-rebalance.service",
}
"""What ``export --print`` calls them, and their names."""
INSTALLED = "/usr/bin/zconsole"
"""The program in the units as they stand."""


def shipped(name: str) -> str:
    """The text of a file of FILES; a unit starts this very program."""
    text = (resources.files("zconsole") / "share" / FILES[name]).read_text()
    return for_program(text, sys.argv[0], sys.executable)


def for_program(unit: str, program: str, interpreter: str) -> str:
    """A unit with this program's full path: systemd searches few directories.

    ``program`` is how it was started; if that is a module or an archive, ``interpreter`` runs it.
    """
    path = _word(str(Path(program).absolute()))
    if Path(program).name == "zconsole":
        command = path
    elif Path(program).suffix == ".pyz":
        command = f"{_word(interpreter)} {path}"
    else:
        command = f"{_word(interpreter)} -m zconsole"
    for start in ("ExecStart=", "ExecStart=-"):  # with - its failure doesn't count
        unit = unit.replace(f"{start}{INSTALLED} ", f"{start}{command} ")
    return unit


def _word(path: str) -> str:
    """A path quoted so that systemd reads one word (systemd.service(5))."""
    safe = path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{safe}"' if safe != path or " " in path else path
