"""What holds now, beside what happened: damaged files, zpool's words, the machine's load."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rich.cells import cell_len

from zconsole.monitor.frame import Frame
from zconsole.pool.model import HostLoad
from zconsole.ui.display_format import DisplayFormat, percent
from zconsole.ui.widgets.draw import Line, Span, beside, crop, fit, hung
from zconsole.ui.widgets.short_names import middle
from zconsole.zfs.sources.base import NO_READER, Capabilities

_LABEL = 17
_DAMAGED = fit("damaged", _LABEL)
_DAMAGED_SHOWN = 4
"""Damaged files listed above the events where these are not given the whole screen."""


class StatusMessage(NamedTuple):
    """Something that holds, or that happened."""

    label: str
    """What it is, or when it was."""
    text: str
    role: str = ""
    mark: str = " "
    """How bad it is, without color."""
    seen: str = ""
    """Who saw it, where that is not zpool."""
    is_path: bool = False
    """Whether the end of the text must stay."""


def damaged(frame: Frame, *, whole: bool = False) -> Iterator[StatusMessage]:
    """The files that are damaged, a few of them or all."""
    names = frame.seen.errors or ()
    shown = len(names) if whole or len(names) <= _DAMAGED_SHOWN else _DAMAGED_SHOWN - 1
    for name in names[:shown]:
        yield StatusMessage(_DAMAGED, name, "error", "x", is_path=True)
    if frame.seen.error_count and not names:
        yield StatusMessage(_DAMAGED, "only root is told which files: zpool status -v", "dim")
    rest = max(len(names), frame.seen.error_count or 0) - shown if names else 0
    if rest:
        yield StatusMessage(_DAMAGED, f"and {rest} more", "error", "x")


def words(frame: Frame, source: Capabilities | None) -> Iterator[StatusMessage]:
    """What zpool itself says of the pool, and why it is not read in the best way there is."""
    pool = frame.seen
    words_of_zpool = (("zpool says", pool.message), ("action", pool.action), ("see", pool.see))
    yield from (StatusMessage(fit(label, _LABEL), text) for label, text in words_of_zpool if text)
    if source is not None and source.reason and source.name != NO_READER:
        yield StatusMessage(fit(f"read as {source.name}", _LABEL), source.reason, "notice")


def machine(host: HostLoad | None, look: DisplayFormat) -> str:
    """``processor 34 %, memory 5.10G of 16.0G used, ARC 3.20G``; empty where nothing is known."""
    if host is None:
        return ""
    known = [] if host.cpu is None else [f"processor {percent(host.cpu, 0)}"]
    if host.memory_total is not None and host.memory_available is not None:
        used = look.size(host.memory_total - host.memory_available)
        known.append(f"memory {used} of {look.size(host.memory_total)} used")
    if host.arc_bytes is not None:
        known.append(f"ARC {look.size(host.arc_bytes)}")
    return ", ".join(known)


def message_lines(
    message: StatusMessage, look: DisplayFormat, width: int, *, whole: bool
) -> tuple[Line, ...]:
    """A message on one line, cut where it is too long, or on as many as it takes."""
    head, mark = Span(f" {message.label}", "dim"), Span(f"{message.mark} ", message.role)
    text, ellipsis = look.text(message.text), look.glyphs.ellipsis
    if whole:
        room = max(12, width - cell_len(head.text) - 1)
        return hung(head, beside(mark, text + message.seen, room, message.role))
    if message.is_path:
        text = middle(text, max(1, width - cell_len(head.text) - 3), ellipsis)
    line = (head, mark, Span(text, message.role), Span(message.seen, "dim"))
    return (crop(line, width, ellipsis),)
