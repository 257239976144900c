"""Texts that earlier runs produced: text files with a section for each case."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

KEPT = Path(__file__).parent / "kept"
LIMIT = 4_000_000
"""Maximum size of all files together, in bytes."""
HEAD, INDENT = "=== ", " "


def sections(texts: Mapping[str, str]) -> str:
    """Return texts by name, joined as one text."""
    return "".join(
        f"{HEAD}{name}\n" + "".join(f"{INDENT}{line}\n" for line in texts[name].split("\n"))
        for name in sorted(texts)
    )


def split(text: str) -> dict[str, str]:
    """Split a text written by `sections` into texts by name."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    # Not splitlines(): an observation may contain any character that Unicode calls a line end.
    for line in text.split("\n")[:-1]:
        if line.startswith(HEAD):
            lines = found[line.removeprefix(HEAD)] = []
        else:
            lines.append(line.removeprefix(INDENT))
    return {name: "\n".join(lines) for name, lines in found.items()}


def read(part: str) -> dict[str, str]:
    """Return the texts of a part's cases by name."""
    texts: dict[str, str] = {}
    for file in _files(part):
        group = file.relative_to(KEPT / part).with_suffix("").as_posix()
        content = file.read_bytes().decode("utf-8", "surrogateescape")
        texts |= {f"{group}/{name}": text for name, text in split(content).items()}
    return texts


def write(part: str, texts: Mapping[str, str], commit: str) -> None:
    """Replace all kept texts of a part, and note the commit that they were produced in."""
    shutil.rmtree(KEPT / part, ignore_errors=True)
    groups: dict[str, dict[str, str]] = {}
    for name, text in texts.items():
        group, _, case = name.rpartition("/")
        groups.setdefault(group, {})[case] = text
    for group, below in groups.items():
        # Not with_suffix(): a group's name may contain dots, as 2.4.4 does.
        file = KEPT / part / f"{group}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(sections(below).encode("utf-8", "surrogateescape"))
    _commit(part).write_text(f"{commit}\n")


def commit(part: str) -> str:
    """Return the commit in which a part was produced; empty if none is noted."""
    return _commit(part).read_text().strip() if _commit(part).exists() else ""


def size() -> int:
    """Return the size of all parts together, in bytes."""
    return sum(file.stat().st_size for file in KEPT.rglob("*") if file.is_file())


def _files(part: str) -> Iterable[Path]:
    return sorted((KEPT / part).rglob("*.txt"))


def _commit(part: str) -> Path:
    return KEPT / part / "commit"
