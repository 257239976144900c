"""What zpool printed, out of what became of it on its way into a file: a terminal's log, a pager,
a shell's tools, a mail, a forum."""

from __future__ import annotations

import re
from collections.abc import Iterator

from zconsole.decode.documents import has_documents

STATUS = re.compile(r"  pool: \S[^\n]*\n[^\n]* (?:state|id): |NAME {1,99}STATE {1,99}READ ")
"""How ``zpool status`` begins, or its table."""
LIST = re.compile(r"NAME {1,99}SIZE ")
"""How ``zpool list`` begins."""

_NUMBER = re.compile(r"( *\d+)")
_OVERWRITTEN = re.compile(r"^[^\n/<]*\r(?=[^\r\n])", re.MULTILINE)
"""What a terminal shows no more: a prompt, ``--More--``. A damaged file's name is none of it."""


def as_printed(text: str, begins: re.Pattern[str]) -> str:
    """The text without what stands before each of its lines: numbers, names of files or machines,
    times, the ``> `` of a mail.

    ``begins`` is STATUS or LIST: what stands before the first line stands before the others.
    JSON, which may have such text in it, is left as it is.
    """
    if has_documents(text):
        return text
    shown = _OVERWRITTEN.sub("", text)
    before = dict.fromkeys(_alike(each) for each in _margins(shown, begins))
    if not before:
        return shown
    return re.sub(f"^(?:{'|'.join(before)})", "", shown, flags=re.MULTILINE)


def _margins(text: str, begins: re.Pattern[str]) -> Iterator[str]:
    for match in begins.finditer(text):
        margin = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if margin and (begins is LIST or margin.strip() not in ("", "config:")):
            yield margin.rstrip() if margin.startswith("<") else margin  # one tag, many lines


def _alike(margin: str) -> str:
    """What matches the margin with other numbers in it; an empty line lacks its blanks."""
    visible = margin.rstrip()
    blanks = re.escape(margin[len(visible) :])
    parts = enumerate(_NUMBER.split(visible))
    core = "".join(r" *\d+" if n % 2 else re.escape(part) for n, part in parts)
    return f"{core}(?:{blanks}|[ \\t\\r]*$)" if core else blanks
