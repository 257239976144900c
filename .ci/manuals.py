"""Write all manual pages and completions, for packages: `manuals.py DIRECTORY`.

They are made from the sources beside this file: man1/*.1, man7/*.7, completions/bash/zconsole,
completions/zsh/_zconsole and completions/fish/zconsole.fish.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from zconsole.cli import man
from zconsole.cli.completion import SCRIPTS

NAMES = {"bash": "zconsole", "zsh": "_zconsole", "fish": "zconsole.fish"}
"""As each shell looks for the script."""


def main(directory: Path) -> None:
    """Write the files; what is there of the same names is replaced."""
    for name in man.names():
        write(directory / "man1" / f"{man.title(name)}.1", man.page(name))
    for name in man.TOPICS:
        write(directory / "man7" / f"{man.title(name)}.7", man.page(name))
    for shell, script in SCRIPTS.items():
        write(directory / "completions" / shell / NAMES[shell], script())


def write(path: Path, text: str) -> None:
    """A file, with the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY")
    main(Path(sys.argv[1]))
