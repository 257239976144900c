"""What holds now, beside what happened: damaged files, zpool's words, the machine's load."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from zconsole.monitor.frame import Frame
from zconsole.pool.model import HostLoad
from zconsole.ui.display_format import DisplayFormat, percent
from zconsole.ui.widgets.draw import Line, Span, beside, crop, fit, hung
from zconsole.ui.widgets.short_names import middle
from zconsole.zfs.sources.base import NO_READER, Capabilities

_LABEL = 16
_DAMAGED_SHOWN = 4
"""Damaged files told above the events where these are not given the whole screen."""


class StatusMessage(NamedTuple):
    """Something that holds, under its label."""

    label: str
    text: str
    role: str = ""

    @property
    def mark(self) -> str:
        """As events have it: how bad it is."""
        return "x" if self.role == "error" else " "


def damaged(frame: Frame, *, whole: bool = False) -> Iterator[StatusMessage]:
    """The files that are damaged, a few of them or all."""
    names = frame.errors or ()
    shown = len(names) if whole or len(names) <= _DAMAGED_SHOWN else _DAMAGED_SHOWN - 1
    for name in names[:shown]:
        yield StatusMessage("damaged", name, "error")
    if frame.error_count and not names:
        yield StatusMessage("damaged", "only root is told which files: zpool status -v", "dim")
    rest = max(len(names), frame.error_count or 0) - shown if names else 0
    if rest:
        yield StatusMessage("damaged", f"and {rest} more", "error")


def words(frame: Frame, source: Capabilities | None) -> Iterator[StatusMessage]:
    """What zpool itself says of the pool, and why it is not read in the best way there is."""
    told = (("zpool says", frame.message), ("action", frame.action), ("see", frame.see))
    yield from (StatusMessage(label, text) for label, text in told if text)
    if source is not None and source.reason and source.name != NO_READER:
        yield StatusMessage(f"read as {source.name}", source.reason, "notice")


def machine(host: HostLoad | None, look: DisplayFormat) -> str:
    """``processor 34 %, memory 5.10G of 16.0G used, ARC 3.20G``; empty where nothing is known."""
    if host is None:
        return ""
    told = [] if host.cpu is None else [f"processor {percent(host.cpu, 0)}"]
    if host.memory_total is not None and host.memory_available is not None:
        used = look.size(host.memory_total - host.memory_available)
        told.append(f"memory {used} of {look.size(host.memory_total)} used")
    if host.arc_bytes is not None:
        told.append(f"ARC {look.size(host.arc_bytes)}")
    return ", ".join(told)


def message_line(message: StatusMessage, look: DisplayFormat, width: int) -> Line:
    """A message on one line; a damaged file keeps the end of its name."""
    text, ellipsis = look.text(message.text), look.glyphs.ellipsis
    if message.role == "error":
        text = middle(text, max(1, width - _LABEL - 4), ellipsis)
    return crop((_head(message), Span(f" {message.mark} {text}", message.role)), width, ellipsis)


def message_whole(message: StatusMessage, look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """A message on as many lines as it takes."""
    mark, text = Span(f" {message.mark} ", message.role), look.text(message.text)
    room = max(13, width - _LABEL - 1)
    return hung(_head(message), beside(mark, text, room, message.role))


def _head(message: StatusMessage) -> Span:
    return Span(f" {fit(message.label, _LABEL)}", "dim")
