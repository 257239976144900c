"""JSON documents in saved output, among whatever else was saved with them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from zconsole.errors import NotUnderstoodError

_OBJECT = re.compile(r"^[^\S\n]*\{", re.MULTILINE)
_FIRST = re.compile(r'^\{\s*"', re.MULTILINE)

Document = dict[str, Any]


def has_documents(text: str) -> bool:
    """Whether the text is JSON, or a line in it, as below a login's banner, begins an object."""
    return text.lstrip().startswith("{") or _FIRST.search(text) is not None


def documents_of(text: str) -> list[Document]:
    """Every JSON object that begins a line, whatever stands around it: a banner, a prompt.

    Raises NotUnderstoodError, with the number of the line, where one is damaged.
    """
    decoder, found, end = json.JSONDecoder(), [], 0
    number, counted = 1, 0
    while (match := _OBJECT.search(text, end)) is not None:
        number, counted = number + text.count("\n", counted, match.end()), match.end()
        try:
            document, end = decoder.raw_decode(text, match.end() - 1)
        except (ValueError, RecursionError):
            raise NotUnderstoodError(f"line {number}: damaged JSON") from None
        found.append(document)
    return found


def together(documents: Sequence[Document]) -> Document:
    """The last of several (``zpool status -j 1``, files put together).

    It has the pools of those before it that are about other pools only.
    """
    *earlier, document = documents
    known = document.get("pools")
    if not isinstance(known, dict):
        return document
    seen, others = set(known), list[Document]()
    for each in reversed(earlier):
        pools = each.get("pools")
        if not isinstance(pools, dict) or not seen.isdisjoint(pools):
            break
        seen.update(pools)
        others.append(pools)
    pools = {name: pool for each in reversed(others) for name, pool in each.items()}
    return {**document, "pools": {**pools, **known}}
