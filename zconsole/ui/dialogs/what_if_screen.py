"""The screen for what-if questions, answered as they are typed.

It shows every top-level vdev before and after, and the consequences.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from textual.app import ComposeResult
from textual.widgets import Input

from zconsole import units
from zconsole.errors import UsageError
from zconsole.output.what_if import bare_words, busy_words, cost_words, spread_words
from zconsole.pool.balance import Balance, VdevBalance
from zconsole.pool.model import placed
from zconsole.pool.volumes import volume_sentences
from zconsole.pool.what_if import Changes, Outlook, grown, outlook, parse_changes
from zconsole.scan_report.resilver_time import PastRate, member_duration, paces, resilver_duration
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import Frame, VdevRow, range_words
from zconsole.ui.dialogs.screens import Offers, Prompt, TextScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.balance import fill_role
from zconsole.ui.panes.reasons import paragraph
from zconsole.ui.themed_app import begin
from zconsole.ui.view_state import ViewState
from zconsole.ui.widgets.draw import Line, Lines, Span, beside, fit, spread
from zconsole.ui.widgets.graph import bar
from zconsole.ui.widgets.lines_view import FooterView, LinesView
from zconsole.units import percent

HINTS = (
    ("SIZE", "adds a vdev: raidz2:6x18TB, mirror:2x8T; TB is decimal, T binary"),
    ("NAME=SIZE", "swaps a vdev's disks for larger ones"),
    ("disk=SIZE", "times a resilver of such a disk"),
)
_NAME = 14
_WHEN = 4
_WIDEST = 160
"""Most columns the table takes: numbers far from their names are hard to follow."""


@dataclass(slots=True)
class Question:
    """The typed question, its pool, and the known history of the pool."""

    text: str
    frame: Frame
    paces: Sequence[PastRate] = ()
    row: VdevRow | None = None
    """Device at the cursor: its resilver is estimated if no size is typed."""


class WhatIfScreen(TextScreen[None]):
    """A prompt above its answer."""

    AUTO_FOCUS = "#prompt"

    def __init__(self, state: ViewState, question: Question) -> None:
        super().__init__(f"WHAT IF  {state.look.text(question.frame.pool)}", self._lines)
        self._question = question
        self._past = state.options.past

    def compose(self) -> ComposeResult:
        """Yield the prompt, and the view below it."""
        yield Prompt(id="prompt", placeholder="raidz2:6x4T  raidz2-0=6x8T  disk=8T")
        yield LinesView(id="text")
        yield FooterView(id="keys")

    def on_mount(self) -> None:
        """Load the history of the pool."""
        begin(self, self._recall, group="past")

    def on_input_changed(self, message: Input.Changed) -> None:
        """Answer the new text."""
        self._question.text = message.value
        self.update()

    def copies(self) -> Offers:
        """Return the same question as a command, once the typed text is valid."""
        question = self._question
        try:
            wanted = parse_changes(question.text)
            if question.frame.root is None or not wanted:
                return ()
            grown(question.frame.root, wanted.adds, wanted.resizes)
        except UsageError:
            return ()
        return (("command", command_of(question)),)

    def _lines(self, look: DisplayFormat, width: int) -> Lines:
        return whatif_lines(self._question, look, width)

    async def _recall(self) -> None:
        frame = self._question.frame
        reports = await self._past(frame.guid) if self._past and frame.guid else ()
        if frame.root is not None:
            scans = [view.scan for view in frame.scans]
            self._question.paces = paces(frame.root, scans, reports)
            self.update()


def whatif_lines(question: Question, look: DisplayFormat, width: int) -> Lines:
    """Return the answer in lines of at most ``width`` cells, or the error in its place."""
    root = question.frame.root
    if root is None:
        return ((Span(" nothing is known of this pool's vdevs yet", "dim"),),)
    try:
        wanted = parse_changes(question.text)
        after = grown(root, wanted.adds, wanted.resizes)
    except UsageError as error:
        problem = beside(Span(" "), look.text(str(error)), width - 1, "error")
        return (*problem, (), *_hints(look, width))
    view = outlook(root, after, question.frame.version, question.frame.seen.volumes)
    lines = [*_table(view, bool(wanted), look, width)]
    if wanted:
        lines += [(), *_cost(view, look, width)]
        lines += paragraph("command", command_of(question), look, width)
    lines += [*_resilver(wanted, question, look, width), (), *_hints(look, width)]
    return tuple(look.crop(line, width) for line in lines)


def _table(view: Outlook, changed: bool, look: DisplayFormat, width: int) -> Iterator[Line]:
    """Yield one bar per vdev as it is, and below it one as it would be."""
    columns: Line = (Span(_numbers("fill", "usable free", "new writes")),)
    head = spread(
        (Span(f" {fit('VDEV', _NAME)}"),), columns, min(width, _WIDEST), look.glyphs.ellipsis
    )
    yield tuple(Span(span.text, "title") for span in head)
    if not view.after.vdevs:
        yield (Span(" the source gives no sizes of vdevs", "dim"),)
    # Pair by order, not by name: old listings give two vdevs the same name.
    for was, now in zip_longest(view.before.vdevs, view.after.vdevs):
        name = look.middle((now or was).name, _NAME)
        if was is not None:
            yield _vdev(name, "now", was, look, width)
            name = ""
        if changed and now is not None:
            yield _vdev(name, "then", now, look, width)


def _vdev(name: str, when: str, vdev: VdevBalance, look: DisplayFormat, width: int) -> Line:
    later = when == "then"
    share = percent(vdev.new_write_share)
    # Free space after parity; raw, and labeled so, if the layout is unknown.
    unknown = vdev.usable_free_bytes is None and vdev.free_bytes is not None
    free = look.size(vdev.free_bytes if unknown else vdev.usable_free_bytes) + " raw" * unknown
    tail = _numbers(percent(vdev.fill, 1), free, share)
    room = max(0, min(width, _WIDEST) - _NAME - _WHEN - 4 - len(tail))
    drawn = bar(vdev.fill, room, look.glyphs, fill_role(vdev.fill), thin=not later)
    role = "" if later else "dim"
    return (
        Span(f" {fit(name, _NAME)} "),
        Span(f"{when:<{_WHEN}} ", role),
        *drawn,
        Span(tail, role),
    )


def _numbers(fill: str, free: str, share: str) -> str:
    return f"{fill:>8}  {free:>11} {share:>11} "


def _cost(view: Outlook, look: DisplayFormat, width: int) -> Iterator[Line]:
    gained = _free(view.after) - _free(view.before)
    more = f"{units.size(gained)} more free after parity" if gained > 0 else ""
    yield from paragraph("caution", bare_words(view), look, width)
    yield from paragraph("space", more, look, width)
    yield from paragraph("spread", spread_words(view), look, width)
    busy = "" if view.busy_share is None else busy_words(view.busy_share)
    yield from paragraph("new writes", busy, look, width)
    yield from paragraph("rebalance", cost_words(view), look, width)
    volumes = "; ".join(volume_sentences(view.after.volumes, look.size))
    yield from paragraph("volumes", volumes, look, width)


def _free(balance: Balance) -> int:
    return sum(vdev.usable_free_bytes or 0 for vdev in balance.vdevs)


def _resilver(
    wanted: Changes, question: Question, look: DisplayFormat, width: int
) -> Iterator[Line]:
    """Yield how long a resilver takes for the typed disk size, or for the disk at the cursor."""
    root, row = question.frame.root, question.row
    if root is None or (wanted.disk is None and row is None):
        return
    if wanted.disk is not None:
        what = f"a disk of {units.size(wanted.disk)}"
        found = resilver_duration(root, wanted.disk, question.paces)
    else:
        what, found = _of_row(question)
    took = "unknown: no completed scan recorded"
    if found is not None:
        took = f"{units.duration(found.eta)} {range_words(found)}; {found.reason}"
    yield from paragraph("resilver", f"{what}: {took}" if what else "", look, width)


def _of_row(question: Question) -> tuple[str, Estimate | None]:
    row, root = question.row, question.frame.root
    if row is None or root is None:
        return "", None
    places = {place.key: place for place in placed(root)}
    place = places.get(row.key)
    top = places.get(place.top) if place is not None and place.top is not None else None
    # There are estimates only for normal-class vdevs, and only for a single disk.
    if top is None or top.vdev.vclass != "normal" or (top.key == row.key and row.vdev.children):
        return "", None
    return f"of {row.vdev.name}", member_duration(top.vdev, question.paces)


def command_of(question: Question) -> str:
    """Return the same question as a command line."""
    words = [word.removeprefix("+") for word in shlex.split(question.text)]
    adds = [word for word in words if word and "=" not in word]
    resizes = [word for word in words if "=" in word and not word.startswith("disk=")]
    line = ["zconsole", "balance", question.frame.pool]
    line += ["--add-vdev", *adds] if adds else []
    line += ["--resize", *resizes] if resizes else []
    return shlex.join(line)


def _hints(look: DisplayFormat, width: int) -> Iterator[Line]:
    for word, text in HINTS:
        for line in paragraph(word, text, look, width):
            yield tuple(Span(span.text, "dim") for span in line)
