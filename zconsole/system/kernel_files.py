"""Small files of the kernel, in /proc and /sys."""

from __future__ import annotations

from pathlib import Path


def text_in(path: Path) -> str:
    """What stands in it, stripped; empty where it is not there or not for us."""
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def number_in(path: Path) -> int | None:
    """The whole number in it; None without one."""
    text = text_in(path)
    return int(text) if text.isascii() and text.isdigit() else None
