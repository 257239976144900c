"""The characters drawings are made of, for Unicode terminals and for plain ASCII ones."""

from __future__ import annotations

from typing import NamedTuple


class Glyphs(NamedTuple):
    """One set of characters; every one of them is a single cell wide."""

    spark: str
    """Levels from nothing to full, lowest first."""
    heat: str
    """Levels of a cell of a strip, from none to the most."""
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
    pointer: str
    """Before what the cursor is on in a map, and before the current step of a list."""
    mark: str
    """Below a moment on a timeline."""
    dots: str
    """Braille cells by the levels (0 to 4) of their left and right column; empty where none."""
    rising: str
    falling: str
    steady: str
    """How a rate goes."""
    above: str
    below: str
    """In a title: lines are out of sight there."""
    rule: str
    """Between two panes."""
    box: str
    """Corners of a frame, from the top left, clockwise, then its side."""
    axis: str
    """At the top, along and at the foot of a scale."""

    @property
    def is_ascii(self) -> bool:
        """Whether outside text has to be brought to ASCII too."""
        return self.full.isascii()

    @property
    def arrow(self) -> str:
        """Between what was and what is to be."""
        return "->" if self.is_ascii else "→"


UNICODE = Glyphs(
    spark=" ▁▂▃▄▅▆▇█",
    heat=" ░▒▓█",
    gap="·",
    full="█",
    partial="▏▎▍▌▋▊▉",
    thin="━",
    track="·",
    ellipsis="…",
    dot="·",
    folded="▸",
    sorted="▾",
    pointer="›",
    mark="▴",
    dots=" ⢀⢠⢰⢸⡀⣀⣠⣰⣸⡄⣄⣤⣴⣼⡆⣆⣦⣶⣾⡇⣇⣧⣷⣿",
    rising="▲",
    falling="▼",
    steady="=",
    above="↑",
    below="↓",
    rule="─",
    box="╭╮╯╰│",
    axis="┤│┴",
)

ASCII = Glyphs(
    spark=" _.-=+*#@",
    heat=" .:*#",
    gap="?",
    full="#",
    partial="",
    thin="=",
    track=".",
    ellipsis="*",
    dot="|",
    folded="+",
    sorted="v",
    pointer=">",
    mark="^",
    dots="",
    rising="^",
    falling="v",
    steady="=",
    above="^",
    below="v",
    rule="-",
    box="++++|",
    axis="||+",
)
