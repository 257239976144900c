"""``--from FILE|-``: saved ``zpool`` output, text or JSON, as a raw form."""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Sequence
from datetime import UTC, tzinfo
from pathlib import Path
from typing import cast

from zconsole.decode.documents import Document, has_documents, numbered, together
from zconsole.decode.values import POOL_LINE, moment, parse_date
from zconsole.errors import NotFoundError, NotUnderstoodError, UnavailableError, ZconsoleError
from zconsole.raw import FORM_TYPES, Raw
from zconsole.sources.copied import STATUS, as_printed
from zconsole.sources.opened import GZIP, UTF_16

STDIN = "-"
LARGEST = 256 * 1024 * 1024
"""Bytes; no ``zpool status`` is longer, and a wrong file should not fill the memory."""

_HEADING = re.compile(
    r"^(?:(?P<seconds>\d{10})|(?P<date>(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [\w:+\- ]+))\r?$",
    re.MULTILINE | re.ASCII,
)
"""The line that ``-T u`` and ``-T d`` print above each sample, as date(1) does."""


def read_text(path: str, begins: re.Pattern[str] = STATUS) -> str:
    """A saved file or stdin as text, bytes that are no UTF-8 surrogate-escaped, without its mark
    of order of bytes and what stands before each line (``copied``).

    Raises NotFoundError, UnavailableError (permission) and NotUnderstoodError (too long).
    """
    data = sys.stdin.buffer.read(LARGEST + 1) if path == STDIN else _read_file(path)
    if data.startswith(GZIP):
        data = _unpacked(path, data)
    if len(data) > LARGEST:
        raise NotUnderstoodError(f"{path}: too long for output of zpool")
    return as_printed(_text_of(data), begins)


def _unpacked(path: str, data: bytes) -> bytes:
    import gzip  # only here: the start of every report would pay for it
    import zlib

    try:
        with gzip.open(io.BytesIO(data)) as file:
            return file.read(LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise NotUnderstoodError(f"{path}: damaged gzip: {error}") from None


def _text_of(data: bytes) -> str:
    """The text; a NUL is what a crash left of a log, or half a character of a wide encoding."""
    if data.startswith(UTF_16):
        return data.decode("utf-16", "replace").replace("\0", "")
    text = data.replace(b"\0", b"").decode("utf-8", "surrogateescape")
    return text.removeprefix("\ufeff")


def read_saved(path: str, zone: tzinfo = UTC) -> Raw:
    """The newest of ``read_states``."""
    return read_states(path, zone)[-1]


def read_states(path: str, zone: tzinfo = UTC) -> tuple[Raw, ...]:
    """Saved ``zpool status`` output, text or JSON, as a raw form; ``zone`` is that of its dates.

    Of a recording, the newest sample of each pool, the newest of all last; of anything else, one
    form. Its time is the one printed in it (``-T``), else the file's, else now; where none is
    printed, a form whose averages rest on the time is undated. Raises as read_text.
    """
    text = read_text(path)
    t = time.time() if path == STDIN else Path(path).stat().st_mtime
    place = "standard input" if path == STDIN else path
    if not text.strip():
        raise NotUnderstoodError(f"{place}: empty")
    if not _is_json(text):
        return (Raw(t=_headed(text, zone) or t, place=place, source="text", text=text),)
    found = _documents(place, text)
    if _is_sample(found[-1][0]):
        return _newest(place, found)
    document = together([document for document, _ in found])
    if "vdev_tree" in document:
        return (Raw(t=t, undated=True, place=place, source="libzfs", libzfs=document),)
    printed = moment(document.get("time"), zone)
    if printed is None:
        return (Raw(t=t, undated=True, place=place, source="json", status=document),)
    return (Raw(t=printed, place=place, source="json", status=document),)


def _is_sample(document: Document) -> bool:
    """Whether it is a line of a recording."""
    forms = [isinstance(document[form], FORM_TYPES[form]) for form in FORM_TYPES & document.keys()]
    return isinstance(document.get("t"), (int, float)) and bool(forms) and all(forms)


def _newest(place: str, found: Sequence[tuple[Document, int]]) -> tuple[Raw, ...]:
    """The last line of a recording about each pool."""
    from zconsole.sources.replay import pool_name  # only here: a report loads no event loop

    newest: dict[str, Raw] = {}
    for document, line in found:
        if _is_sample(document):
            raw = cast("Raw", {**document, "place": f"{place}: line {line}"})
            name = pool_name(raw)
            newest.pop(name, None)
            newest[name] = raw
    return tuple(newest.values())


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


def _read_file(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(LARGEST + 1)
    except FileNotFoundError:
        raise NotFoundError(f"{path}: no such file") from None
    except PermissionError:
        raise UnavailableError(f"{path}: permission denied") from None
    except OSError as error:
        raise ZconsoleError(f"{path}: {error.strerror}") from None


def _documents(place: str, text: str) -> Sequence[tuple[Document, int]]:
    """Every document, with the line on which it begins."""
    try:
        return numbered(text)
    except NotUnderstoodError as error:
        raise NotUnderstoodError(f"{place}: {error}") from None


def _is_json(text: str) -> bool:
    return has_documents(text) and (text.lstrip().startswith("{") or not POOL_LINE.search(text))
