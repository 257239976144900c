"""What earlier runs saw: text files, a section for each case."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

KEPT = Path(__file__).parent / "kept"
LIMIT = 4_000_000
"""Bytes that all files together may take."""
HEAD, INDENT = "=== ", " "


def read(part: str) -> dict[str, str]:
    """Return the texts of a part's cases by name."""
    texts: dict[str, str] = {}
    for file in sorted((KEPT / part).rglob("*.txt")):
        group = file.relative_to(KEPT / part).with_suffix("").as_posix()
        lines: list[str] = []
        # Not splitlines(): an observation may hold any character that Unicode calls a line's end.
        for line in file.read_text(encoding="utf-8", errors="surrogateescape").split("\n")[:-1]:
            if line.startswith(HEAD):
                lines = []
                texts[f"{group}/{line.removeprefix(HEAD)}"] = ""
                name = f"{group}/{line.removeprefix(HEAD)}"
            else:
                lines.append(line.removeprefix(INDENT))
                texts[name] = "\n".join(lines)
    return texts


def write(part: str, texts: Mapping[str, str]) -> None:
    """Replace everything kept of a part."""
    shutil.rmtree(KEPT / part, ignore_errors=True)
    groups: dict[str, list[str]] = {}
    for name in sorted(texts):
        group, _, case = name.rpartition("/")
        indented = (f"{INDENT}{line}\n" for line in texts[name].split("\n"))
        groups.setdefault(group, []).append(f"{HEAD}{case}\n{''.join(indented)}")
    for group, sections in groups.items():
        file = KEPT / part / f"{group}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(sections), encoding="utf-8", errors="surrogateescape")


def size() -> int:
    """Return the bytes that all parts take together."""
    return sum(file.stat().st_size for file in KEPT.rglob("*") if file.is_file())
