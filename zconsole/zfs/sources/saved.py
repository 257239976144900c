"""Raw forms from saved ``zpool`` output, text or JSON (``--from FILE|-``)."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TextIO

from zconsole.errors import NotUnderstoodError
from zconsole.zfs.decode.values import (
    POOL_LINE,
    documents_of,
    has_documents,
    moment,
    parse_date,
    together,
)
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.open_text import DAMAGE, STDIN, lines, place_of, reading
from zconsole.zfs.sources.recording import (
    MADE_BY,
    MOST_MEMORY,
    MOST_POOLS,
    PRINTED,
    Gaps,
    NotRawError,
    is_raw,
    memory_of,
    pool_name,
    raw_of,
)

STATUS = re.compile(
    r"   pool: \S[^\n]{0,300}\n[^\n]{0,1000} id: "
    r"|  pool: \S[^\n]{0,300}\n[^\n]{0,1000} (?:state|id): |NAME {1,99}STATE {1,99}READ "
)
"""The beginning of the output of ``zpool import`` or ``zpool status``, or of its table."""
LIST = re.compile(r"NAME {1,99}SIZE |\t[A-Za-z/][^\t\n]*\t\d+(?:\t[\d-]+){5,6}\t-\t[A-Z]")
"""The beginning of ``zpool list``, or a vdev line of ``-Hp``, which has no DEDUP. A pool line of
``-Hp`` is not used, as a margin before it could be part of the pool's name."""

LONGEST_MARGIN = 1000
"""Longest margin in characters; a pattern takes a hundred bytes for each."""
MOST_MARGINS = 200
"""Number of different margins, such as machine or file names; each line is tried with each."""

_NUMBER = re.compile(r"(?<! )( *+\d+)")
_OVERWRITTEN = re.compile(r"^[^\n/<]*\r(?=[^\r\n])", re.MULTILINE)
"""Text that a terminal overwrites, such as a prompt or ``--More--``. The name of a damaged file
cannot match it."""

_SIDES = frozenset("|│┃║")
_EDGES = "+-─━═┌┐└┘┏┓┗┛╔╗╚╝╭╮╰╯"
"""Characters that draw the top and bottom of a box."""

LARGEST = 16 * 2**20
"""Characters; no ``zpool status`` is longer. Each may take four bytes, in several copies."""
MOST_LINES = 1_000_000
"""Most lines of ``zpool`` output; each is a separate string while they are read."""

_HEADING = re.compile(
    r"^(?:(?P<seconds>\d{10})|(?P<date>(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [\w:+\- ]+))\r?$",
    re.MULTILINE | re.ASCII,
)
"""The line that ``-T u`` and ``-T d`` print above each sample, the latter as date(1) does."""


def read_text(path: str, begins: re.Pattern[str] = STATUS) -> str:
    """Read a saved file or stdin as text, with bytes that are not UTF-8 surrogate-escaped.

    The byte order mark and any margin before each line are removed (``as_printed``).

    Raises NotFoundError, UnavailableError (permission) and NotUnderstoodError (too long).
    """
    with reading(path) as file:
        return as_printed(_rest(path, "", file), begins)


def _rest(path: str, begun: str, file: TextIO) -> str:
    """Return ``begun``, already read, and the rest of the file, without NULs left by a crash."""
    text = begun + file.read(LARGEST + 1 - len(begun))
    if len(text) > LARGEST or text.count("\n") > MOST_LINES:
        raise NotUnderstoodError(f"{place_of(path)}: too long for zpool output")
    text = text.replace("\0", "")
    if has_documents(text) and memory_of(text) > MOST_MEMORY:
        raise NotUnderstoodError(f"{place_of(path)}: too many values for zpool output")
    return text


def read_states(path: str, zone: tzinfo = UTC, gaps: Gaps | None = None) -> tuple[Raw, ...]:
    """Read saved ``zpool status`` output, text or JSON, as raw forms.

    ``zone`` is that of the dates in it. A recording gives the newest sample of each pool, the
    newest of all last; its unreadable lines are counted in ``gaps``. Anything else gives one form.
    Its time is the one printed in it (``-T``), else that of the file, else now; if none is printed,
    the form is undated. Raises as read_text does.
    """
    with reading(path) as file:
        begun = list(_begun(file))
        if begun and is_raw(begun[-1]):
            every = itertools.chain(begun, lines(file))
            return _newest(place_of(path), every, Gaps() if gaps is None else gaps)
        text = as_printed(_rest(path, "".join(begun), file), STATUS)
    return (_saved(path, text, zone),)


def _saved(path: str, text: str, zone: tzinfo) -> Raw:
    t = time.time() if path == STDIN else Path(path).stat().st_mtime
    place = place_of(path)
    if not text.strip():
        raise NotUnderstoodError(f"{place}: empty")
    if not has_documents(text) or (POOL_LINE.search(text) and not text.lstrip().startswith("{")):
        headed = _headed(text, zone)
        raw = Raw(t=headed or t, place=place, source="text", text=text)
        return raw if headed else Raw(**raw, undated=True)
    try:
        document = together(documents_of(text))
    except NotUnderstoodError as error:
        raise NotUnderstoodError(f"{place}: {error}") from None
    if "topology" in document:
        raise NotUnderstoodError(f"{place}: {PRINTED}. {MADE_BY}")
    if "vdev_tree" in document:
        return Raw(t=t, undated=True, place=place, source="libzfs", libzfs=document)
    printed = moment(document.get("time"), zone)
    if printed is None:
        return Raw(t=t, undated=True, place=place, source="json", status=document)
    return Raw(t=printed, place=place, source="json", status=document)


def _begun(file: TextIO) -> Iterator[str]:
    """Yield the lines up to the first sample of a recording, or else all that may be read."""
    size = count = 0
    while size <= LARGEST and count <= MOST_LINES and (line := file.readline(LARGEST + 1 - size)):
        size, count = size + len(line), count + 1
        yield line
        if is_raw(line):
            return


def _newest(place: str, every: Iterable[str | None], gaps: Gaps) -> tuple[Raw, ...]:
    """Return the last line of a recording about each pool."""
    newest: dict[str, Raw] = {}
    try:
        for number, line in enumerate(every, 1):
            if line is not None and not line.strip():
                continue
            at = f"{place}: line {number}"
            try:
                raw = raw_of(line)
            except NotRawError as error:
                gaps.add(f"{at}: {error}")
                continue
            name = pool_name(raw)
            newest.pop(name, None)
            newest[name] = {**raw, "place": at}
            if len(newest) > MOST_POOLS:
                del newest[next(iter(newest))]
                gaps.add(f"{at}: too many pools")
    except DAMAGE as error:
        gaps.add(f"{place}: damaged: {error}")
    return tuple(newest.values())


def _headed(text: str, zone: tzinfo) -> float | None:
    """Return epoch seconds of the last heading with a time, if every pool is below it."""
    headings = list(_HEADING.finditer(text))
    if not headings:
        return None
    last = headings[-1]
    above, below = (
        set(POOL_LINE.findall(part)) for part in (text[: last.start()], text[last.end() :])
    )
    if not below or not above <= below:
        return None
    return float(last["seconds"]) if last["seconds"] else parse_date(last["date"], zone)


def as_printed(text: str, begins: re.Pattern[str]) -> str:
    """Return the text without the margin before each of its lines.

    On its way into a file, output may pass a terminal's log, a pager, shell tools, a mail or a
    forum, which add line numbers, names of files or machines, times, the ``> `` of a mail or the
    frame of a box.

    ``begins`` is STATUS or LIST: the text before its match on the first line is the margin of the
    others. JSON is left unchanged, as it may contain such text.
    """
    if has_documents(text):
        return text
    shown = _unframed(_OVERWRITTEN.sub("", text), begins)
    margins: dict[str, None] = {}
    for place in _places(shown, begins):
        margin = shown[shown.rfind("\n", 0, place) + 1 : place]
        said = begins is LIST or margin.strip() not in ("", "config:")
        if 0 < len(margin) <= LONGEST_MARGIN and said:
            # HTML: only the first line has the tag, so its trailing blanks vary.
            margins[_alike(margin.rstrip() if margin.startswith("<") else margin)] = None
    before = list(margins)[:MOST_MARGINS]
    if not before:
        return shown
    return re.sub(f"^(?:{'|'.join(before)})", "", shown, flags=re.MULTILINE)


def _unframed(text: str, begins: re.Pattern[str]) -> str:
    """Remove the right side, top and bottom of a box drawn around the text.

    Its left side is removed as a margin.
    """
    sides = set()
    for place in _places(text, begins):
        end = text.find("\n", place)
        line = text[text.rfind("\n", 0, place) + 1 : end if end >= 0 else None].rstrip()
        if line[0] in _SIDES and line[1:].endswith(line[0]):
            sides.add(line[0])
    if not sides:
        return text
    inside = []
    for line in text.split("\n"):
        bare = line.rstrip()
        if bare[:1] in sides and bare[1:].endswith(bare[0]):
            inside.append(bare[:-1].rstrip())
        else:
            inside.append(line if bare.strip(_EDGES) else "")
    return "\n".join(inside)


def _places(text: str, begins: re.Pattern[str]) -> Iterator[int]:
    """Yield where ``begins`` matches, at most once per line, as more would take quadratic time."""
    match = begins.search(text)
    while match is not None:
        yield match.start()
        end = text.find("\n", match.start())
        match = begins.search(text, end) if end >= 0 else None


def _alike(margin: str) -> str:
    """Return a pattern for the margin with any numbers in it; an empty line may lack its blanks."""
    visible = margin.rstrip()
    blanks = re.escape(margin[len(visible) :])
    parts = _NUMBER.split(visible)
    core = re.escape(parts[0])
    for before, after in zip(("a", *parts[2::2]), parts[2::2], strict=False):
        # Between adjacent numbers require a blank: otherwise the digits could be divided between
        # them in any number of ways (exponential backtracking).
        core += (r" *\d+" if before else r" +\d+") + re.escape(after)
    return f"{core}(?:{blanks}|[ \\t\\r]*$)" if core else blanks
