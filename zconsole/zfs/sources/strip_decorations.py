"""Finds what zpool printed in what became of it on its way into a file.

On the way may be a terminal's log, a pager, a shell's tools, a mail, a forum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from zconsole.zfs.decode.documents import has_documents

STATUS = re.compile(r"  pool: \S[^\n]*\n[^\n]* (?:state|id): |NAME {1,99}STATE {1,99}READ ")
"""How ``zpool status`` begins, or its table."""
LIST = re.compile(r"NAME {1,99}SIZE |\t[A-Za-z/][^\t\n]*\t\d+(?:\t[\d-]+){5,6}\t-\t[A-Z]")
"""How ``zpool list`` begins, or a vdev of ``-Hp``, which has no DEDUP: what stands before a pool
could be part of its name."""

LONGEST_MARGIN = 1000
"""Characters before a line; a pattern takes a hundred bytes for each."""

_NUMBER = re.compile(r"( *\d+)")
_OVERWRITTEN = re.compile(r"^[^\n/<]*\r(?=[^\r\n])", re.MULTILINE)
"""What a terminal shows no more: a prompt, ``--More--``. A damaged file's name is none of it."""

_SIDES = frozenset("|│┃║")
_EDGES = "+-─━═┌┐└┘┏┓┗┛╔╗╚╝╭╮╰╯"
"""What the top and bottom of a box are drawn with."""


def as_printed(text: str, begins: re.Pattern[str]) -> str:
    """The text without what stands before each of its lines.

    That may be numbers, names of files or machines, times, the ``> `` of a mail, a box's frame.
    ``begins`` is STATUS or LIST: what stands before the first line stands before the others.
    JSON, which may have such text in it, is left as it is.
    """
    if has_documents(text):
        return text
    shown = _unframed(_OVERWRITTEN.sub("", text), begins)
    before = dict.fromkeys(_alike(each) for each in _margins(shown, begins))
    if not before:
        return shown
    return re.sub(f"^(?:{'|'.join(before)})", "", shown, flags=re.MULTILINE)


def _unframed(text: str, begins: re.Pattern[str]) -> str:
    """The text without the right side, top and bottom of a box drawn around it.

    Its left side is a margin like others.
    """
    lines = (_line_at(text, match.start()) for match in begins.finditer(text))
    sides = {line[0] for line in lines if line[0] in _SIDES and line[1:].endswith(line[0])}
    if not sides:
        return text
    return "\n".join(_inside(line, sides) for line in text.split("\n"))


def _line_at(text: str, place: int) -> str:
    end = text.find("\n", place)
    return text[text.rfind("\n", 0, place) + 1 : end if end >= 0 else None].rstrip()


def _inside(line: str, sides: set[str]) -> str:
    bare = line.rstrip()
    if bare[:1] in sides and bare[1:].endswith(bare[0]):
        return bare[:-1].rstrip()
    return line if bare.strip(_EDGES) else ""


def _margins(text: str, begins: re.Pattern[str]) -> Iterator[str]:
    for match in begins.finditer(text):
        margin = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if 0 < len(margin) <= LONGEST_MARGIN and (
            begins is LIST or margin.strip() not in ("", "config:")
        ):
            yield margin.rstrip() if margin.startswith("<") else margin  # one tag, many lines


def _alike(margin: str) -> str:
    """What matches the margin with other numbers in it; an empty line lacks its blanks."""
    visible = margin.rstrip()
    blanks = re.escape(margin[len(visible) :])
    parts = _NUMBER.split(visible)
    core = re.escape(parts[0])
    for before, after in zip(("a", *parts[2::2]), parts[2::2], strict=False):
        # Numbers side by side: without a blank, digits could be either's, in any number of ways.
        core += (r" *\d+" if before else r" +\d+") + re.escape(after)
    return f"{core}(?:{blanks}|[ \\t\\r]*$)" if core else blanks
