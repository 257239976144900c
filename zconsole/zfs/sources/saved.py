"""``--from FILE|-``: saved ``zpool`` output, text or JSON, as a raw form."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from itertools import chain
from pathlib import Path
from typing import TextIO

from zconsole.errors import NotUnderstoodError
from zconsole.zfs.decode.documents import Document, documents_of, has_documents, together
from zconsole.zfs.decode.values import POOL_LINE, moment, parse_date
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.open_text import DAMAGE, STDIN, lines, place_of, reading
from zconsole.zfs.sources.samples import (
    MOST_MEMORY,
    Gaps,
    NoSampleError,
    is_sample,
    memory_of,
    pool_name,
    sample_of,
)
from zconsole.zfs.sources.strip_decorations import STATUS, as_printed

LARGEST = 16 * 2**20
"""Characters; no ``zpool status`` is longer. Each may take four bytes, in several copies."""
MOST_LINES = 1_000_000
"""Lines of ``zpool`` output; each is a string of its own while they are read."""

_HEADING = re.compile(
    r"^(?:(?P<seconds>\d{10})|(?P<date>(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [\w:+\- ]+))\r?$",
    re.MULTILINE | re.ASCII,
)
"""The line that ``-T u`` and ``-T d`` print above each sample, as date(1) does."""


def read_text(path: str, begins: re.Pattern[str] = STATUS) -> str:
    """A saved file or stdin as text, bytes that are no UTF-8 surrogate-escaped.

    Without its mark of order of bytes and what stands before each line (``strip_decorations``).
    Raises NotFoundError, UnavailableError (permission) and NotUnderstoodError (too long).
    """
    with reading(path) as file:
        return as_printed(_rest(path, "", file), begins)


def _rest(path: str, begun: str, file: TextIO) -> str:
    """All that stands in a file; ``begun`` was read of it. A NUL is what a crash left of a log."""
    text = begun + file.read(LARGEST + 1 - len(begun))
    if len(text) > LARGEST or text.count("\n") > MOST_LINES:
        raise NotUnderstoodError(f"{place_of(path)}: too long for zpool output")
    text = text.replace("\0", "")
    if has_documents(text) and memory_of(text) > MOST_MEMORY:
        raise NotUnderstoodError(f"{place_of(path)}: too many values for zpool output")
    return text


def read_states(path: str, zone: tzinfo = UTC, gaps: Gaps | None = None) -> tuple[Raw, ...]:
    """Saved ``zpool status`` output, text or JSON, as a raw form; ``zone`` is that of its dates.

    Of a recording, the newest sample of each pool, the newest of all last, and in ``gaps`` the
    lines that are none; of anything else, one form. Its time is the one printed in it (``-T``),
    else the file's, else now; where none is printed, a form whose averages rest on the time is
    undated. Raises as read_text.
    """
    with reading(path) as file:
        begun = list(_begun(file))
        if begun and is_sample(begun[-1]):
            every = chain(begun, lines(file))
            return _newest(place_of(path), every, Gaps() if gaps is None else gaps)
        text = as_printed(_rest(path, "".join(begun), file), STATUS)
    return (_saved(path, text, zone),)


def _saved(path: str, text: str, zone: tzinfo) -> Raw:
    t = time.time() if path == STDIN else Path(path).stat().st_mtime
    place = place_of(path)
    if not text.strip():
        raise NotUnderstoodError(f"{place}: empty")
    if not _is_json(text):
        return Raw(t=_headed(text, zone) or t, place=place, source="text", text=text)
    document = together(_documents(place, text))
    if "vdev_tree" in document:
        return Raw(t=t, undated=True, place=place, source="libzfs", libzfs=document)
    printed = moment(document.get("time"), zone)
    if printed is None:
        return Raw(t=t, undated=True, place=place, source="json", status=document)
    return Raw(t=printed, place=place, source="json", status=document)


def _begun(file: TextIO) -> Iterator[str]:
    """The lines up to the first sample of a recording; all that may be read where none is."""
    size = count = 0
    while size <= LARGEST and count <= MOST_LINES and (line := file.readline(LARGEST + 1 - size)):
        size, count = size + len(line), count + 1
        yield line
        if is_sample(line):
            return


def _newest(place: str, every: Iterable[str | None], gaps: Gaps) -> tuple[Raw, ...]:
    """The last line of a recording about each pool."""
    newest: dict[str, tuple[Raw, int]] = {}
    try:
        for number, line in enumerate(every, 1):
            if line is None or line.strip():
                _take(newest, f"{place}: line {number}", line, gaps)
    except DAMAGE as error:
        gaps.add(f"{place}: damaged: {error}")
    return tuple(raw for raw, _ in newest.values())


def _take(newest: dict[str, tuple[Raw, int]], place: str, line: str | None, gaps: Gaps) -> None:
    try:
        raw, size = sample_of(line)
    except NoSampleError as error:
        gaps.add(f"{place}: {error}")
        return
    name = pool_name(raw)
    newest.pop(name, None)
    newest[name] = {**raw, "place": place}, size
    while sum(size for _, size in newest.values()) > MOST_MEMORY:
        del newest[next(iter(newest))]
        gaps.add(f"{place}: too many pools")


def _headed(text: str, zone: tzinfo) -> float | None:
    """Epoch seconds of the last heading with a time, if every pool of the text stands below it."""
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


def _documents(place: str, text: str) -> Sequence[Document]:
    try:
        return documents_of(text)
    except NotUnderstoodError as error:
        raise NotUnderstoodError(f"{place}: {error}") from None


def _is_json(text: str) -> bool:
    return has_documents(text) and (text.lstrip().startswith("{") or not POOL_LINE.search(text))
