"""``--from FILE|-``: saved ``zpool`` output, text or JSON, as a raw form."""

from __future__ import annotations

import re
import sys
import time
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, cast

from zconsole.decode.documents import documents_of, has_documents, together
from zconsole.decode.values import moment
from zconsole.errors import NotFoundError, NotUnderstoodError, UnavailableError, ZconsoleError
from zconsole.raw import FORMS, Raw

STDIN = "-"
LARGEST = 256 * 1024 * 1024
"""Bytes; no ``zpool status`` is longer, and a wrong file should not fill the memory."""

_TEXT = re.compile(r"^\s*pool: ", re.MULTILINE)


def read_text(path: str) -> str:
    """A saved file or stdin as text, bytes that are no UTF-8 surrogate-escaped.

    Raises NotFoundError, UnavailableError (permission) and NotUnderstoodError (too long).
    """
    data = sys.stdin.buffer.read(LARGEST + 1) if path == STDIN else _read_file(path)
    if len(data) > LARGEST:
        raise NotUnderstoodError(f"{path}: too long for output of zpool")
    return data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")


def read_saved(path: str, zone: tzinfo = UTC) -> Raw:
    """Saved ``zpool status`` output, text or JSON, as a raw form; ``zone`` is that of its dates.

    Its time is the one printed in it (``-T``), else the file's, else now; where none is printed,
    a form whose averages rest on the time is undated. Raises as read_text.
    """
    text = read_text(path)
    t = time.time() if path == STDIN else Path(path).stat().st_mtime
    if not text.strip():
        raise NotUnderstoodError(f"{'standard input' if path == STDIN else path}: empty")
    if not _is_json(text):
        return Raw(t=t, source="text", text=text)
    document = _document(path, text)
    if isinstance(document.get("t"), (int, float)) and any(form in document for form in FORMS):
        return cast("Raw", document)
    if "vdev_tree" in document:
        return Raw(t=t, undated=True, source="libzfs", libzfs=document)
    printed = moment(document.get("time"), zone)
    if printed is None:
        return Raw(t=t, undated=True, source="json", status=document)
    return Raw(t=printed, source="json", status=document)


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


def _document(path: str, text: str) -> dict[str, Any]:
    try:
        return together(documents_of(text))
    except NotUnderstoodError as error:
        raise NotUnderstoodError(f"{path}: {error}") from None


def _is_json(text: str) -> bool:
    return has_documents(text) and (text.lstrip().startswith("{") or not _TEXT.search(text))
