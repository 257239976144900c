"""The characters drawings are made of, for Unicode terminals and for plain ASCII ones."""

from __future__ import annotations

from typing import NamedTuple


class Glyphs(NamedTuple):
    """One set of characters; every one of them is a single cell wide."""

    spark: str
    """Levels from nothing to full, lowest first."""
    gap: str
    """A moment without a sample, between two that have one."""
    full: str
    partial: str
    """Shares of a cell from an eighth upwards; empty where there are none."""
    thin: str
    """A filled cell of a bar that matters less."""
    track: str
    ellipsis: str
    dot: str
    """Between two facts on one line."""
    folded: str
    sorted: str
    mark: str
    """Below a moment on a timeline."""

    @property
    def is_ascii(self) -> bool:
        """Whether outside text has to be brought to ASCII too."""
        return self.full.isascii()


UNICODE = Glyphs(
    spark=" ▁▂▃▄▅▆▇█",
    gap="·",
    full="█",
    partial="▏▎▍▌▋▊▉",
    thin="━",
    track="·",
    ellipsis="…",
    dot="·",
    folded="▸",
    sorted="▾",
    mark="▴",
)

ASCII = Glyphs(
    spark=" _.-=+*#@",
    gap="?",
    full="#",
    partial="",
    thin="=",
    track=".",
    ellipsis="*",
    dot="|",
    folded="+",
    sorted="v",
    mark="^",
)
