"""The characters of drawings, for Unicode terminals and for plain ASCII ones."""

from __future__ import annotations

from typing import NamedTuple


class Glyphs(NamedTuple):
    """One set of characters, all a single cell wide."""

    spark: str
    """Levels from nothing to full, lowest first."""
    heat: str
    """Levels of a cell of a heat strip, from none to the most."""
    gap: str
    """A missing sample between two others."""
    full: str
    partial: str
    """Parts of a cell in eighths, smallest first; empty if the set has none."""
    thin: str
    """Filled cell of a less important bar."""
    track: str
    ellipsis: str
    dot: str
    """Separator of two facts on one line."""
    folded: str
    sorted: str
    pointer: str
    """Marks the cursor in a map and the current step of a list."""
    mark: str
    """Marks a moment below a timeline."""
    dots: str
    """Braille cells by the levels (0 to 4) of their left and right column; empty if none."""
    rising: str
    falling: str
    steady: str
    """Trends of a rate."""
    above: str
    below: str
    """Scroll marks in a title: there are lines out of sight."""
    rule: str
    """Rule between two panes."""
    box: str
    """Corners of a frame, clockwise from the top left, then its side."""
    axis: str
    """Top, middle and foot of a scale."""

    @property
    def is_ascii(self) -> bool:
        """Whether other text has to be converted to ASCII, too."""
        return self.full.isascii()

    @property
    def arrow(self) -> str:
        """Arrow between the state before and after."""
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
