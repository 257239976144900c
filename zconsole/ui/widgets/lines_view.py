"""The widgets for all drawings: lines, lines with a cursor, and the footer of a screen.

Only lines that changed are sent to the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, cast

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual._styles_cache import StylesCache
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.color import Color
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.theme.styles import Palette
from zconsole.ui.widgets.draw import Line, Span, action_at, at_most, crop, merged, spread, width_of

if TYPE_CHECKING:
    from zconsole.ui.themed_app import ThemedApp

_STRIPS = 512
SCROLL_MARKS = 3
"""Cells at the end of a title for the scroll marks."""
_GAP = re.compile(r"(?<=\S)(?P<fill>[ ─-])(?P=fill){4,}")
"""Blanks or rule in a title with room for the scroll marks."""
_WORD = re.compile(r" ?\w\S* ?")
"""The first word of a title, with the blanks beside it."""


class _BareStyles(StylesCache):
    """A cache of rendered lines for a widget without border, padding or tint.

    Textual's own cache computes colors and position of the widget, and checks for each of these, at
    every line.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ground: Color | None = None
        """Color that filters blend with, found by a walk up to the screen; None if unknown."""

    def forget(self) -> None:
        """Drop all lines and the background color."""
        self._ground = None
        self.clear()

    def render_widget(self, widget: Widget, crop: Region) -> list[Strip]:
        """Return the strips of these lines, rendering only dirty ones."""
        lines, (start, end) = crop.line_range, crop.column_span
        if dirty := [y for y in lines if y in self._dirty_lines or y not in self._cache]:
            filters = widget.get_line_filters()
            if self._ground is None:
                _, self._ground = widget.background_colors
            for y in dirty:
                strip = widget.render_line(y)
                for each in filters:
                    strip = strip.apply_filter(each, self._ground)
                self._cache[y] = strip
            self._dirty_lines.difference_update(dirty)
        strips = [self._cache[y] for y in lines]
        if (start, end) == (0, widget.outer_size.width):
            return strips
        return [strip.crop(start, end) for strip in strips]


class LinesView(ScrollView, inherit_bindings=False):
    """A widget with lines under an optional title line that does not scroll.

    Textual sends every cell that is marked dirty, so ``show`` marks only lines that differ from
    those on the screen, and lines out of sight are never requested.
    """

    # With priority, so that it acts before the next key: a slow link delivers several keys in one
    # packet.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "screen.filter", show=False, priority=True, id="filter")
    ]

    title_height = 0
    """Lines of the title: 1, or 0 without one."""
    cursor = -1
    """Index of the line at the cursor; -1 in a view without one."""

    def __init__(self, *, id: str, focusable: bool = False) -> None:  # noqa: A002
        super().__init__(id=id)
        self.can_focus = focusable
        self._bare = self._styles_cache = _BareStyles()
        self._lines: Sequence[Line] = ()
        self._title: Line = ()
        self._palette: Palette = {}
        self._drawn: dict[int, tuple[Line, str]] = {}
        self._strips: LRUCache[tuple[Line, str, int], Strip] = LRUCache(_STRIPS)

    @property
    def look(self) -> DisplayFormat:
        """The current display format."""
        return cast("ThemedApp", self.app).view_state.look

    @property
    def size(self) -> Size:
        """The widget's full size: nothing surrounds the lines, and textual's is slow to compute."""
        return self.outer_size

    def on_mount(self) -> None:
        """Follow the app's theme."""
        self.app.theme_changed_signal.subscribe(self, lambda _: self._restyle())
        self._restyle()

    def _restyle(self) -> None:
        """Take the current theme's styles, and redraw everything."""
        self._palette = cast("ThemedApp", self.app).palette
        self._strips.clear()
        self._drawn.clear()
        self._bare.forget()
        self.refresh()

    def show(self, lines: Sequence[Line], title: Line | None = None) -> None:
        """Show ``lines``; lines already on the screen are not sent again."""
        self._lines = lines
        self._title, self.title_height = title or (), int(title is not None)
        self.update_lines()

    def line_count(self) -> int:
        """Return the number of lines below the title."""
        return len(self._lines)

    def line_at(self, index: int) -> Line:
        """Return the line at ``index``, 0 the first below the title."""
        return self._lines[index]

    @property
    def has_more(self) -> bool:
        """Whether there are lines out of sight below."""
        room = self.size.height - self.title_height
        return self.scroll_offset.y + room < self.line_count()

    def title_line(self) -> Line:
        """Return the line that stays at the top."""
        return self._title

    def ground(self, index: int) -> str:
        """Return the background of a line, one of GROUNDS; the cursor's depends on the focus."""
        if index != self.cursor:
            return ""
        return "cursor" if self.has_focus else "rest"

    def update_lines(self) -> None:
        """Mark the visible lines that differ from those last drawn."""
        width, height = self.size
        top = self.scroll_offset.y
        # Nothing scrolls sideways; a width, known only after the layout, would cause another one.
        total = Size(0, self.line_count() + self.title_height)
        if total != self.virtual_size:
            self.virtual_size = total
        dirty = [y for y in range(height) if self._at(y, top) != self._drawn.get(y)]
        if dirty and self.is_mounted:
            # Like refresh, but without its message to this widget: each wakes a task, and about
            # five of these views take part in a refresh.
            self._set_dirty(*[Region(0, y, width, 1) for y in dirty])
            self._repaint_required = True
            self._check_refresh()
        elif dirty:
            self.refresh()

    def move(self, lines: int) -> None:
        """Scroll by a number of lines."""
        self.scroll_to(y=self.scroll_offset.y + lines, animate=False, immediate=True)

    def page(self, pages: int) -> None:
        """Scroll, or move the cursor, by screens full."""
        self.move(pages * max(1, self.size.height - 2))

    def edge(self, direction: int) -> None:
        """Go to the first or to the last line."""
        self.move(direction * (self.line_count() + 1))

    def bring_in_sight(self, first: int, last: int) -> None:
        """Scroll just enough to show line ``first``, and lines up to ``last`` if they fit."""
        self.update_lines()  # sets the scroll range from the current lines
        room = max(1, self.size.height - self.title_height)
        top = self.scroll_offset.y
        wanted = min(max(top, last - room + 1), first)
        wanted = min(wanted, max(0, self.line_count() - room))  # no blank lines below the last
        if wanted != top:
            # Forced: textual learns only at the next layout that there is more than fits.
            self.scroll_to(y=wanted, animate=False, immediate=True, force=True)
            self.update_lines()

    def render_line(self, y: int) -> Strip:
        """Return the strip of one line of the widget, the title first."""
        line, ground = self._drawn[y] = self._at(y, self.scroll_offset.y)
        width = self.size.width
        key = (line, ground, width)
        strip = self._strips.get(key)
        if strip is None:
            styles, plain = self._palette.get(ground, {}), Style.null()
            used = width_of(line)
            last = "title" if line and line[-1].role == "title" else ""
            filled = merged((*line, Span(" " * max(0, width - used), last)))
            segments = [Segment(span.text, styles.get(span.role, plain)) for span in filled]
            strip = self._strips[key] = Strip(segments, max(used, width)).crop(0, width)
        return strip

    def _at(self, y: int, top: int) -> tuple[Line, str]:
        """Return line ``y`` of the widget and its background, scrolled down by ``top`` lines."""
        if self.title_height:
            if y == 0:
                title = self.title_line()
                return self._with_scroll_marks(
                    _focused(title) if self.has_focus else title, top
                ), ""
            y -= 1
        index = y + top
        if index >= self.line_count():
            return (), ""
        return self.line_at(index), self.ground(index)

    def _with_scroll_marks(self, title: Line, top: int) -> Line:
        """Return the title with scroll marks, at its end or else in a gap."""
        width, above, below = self.size.width, top > 0, self.has_more
        taken = cell_len("".join(span.text for span in title).rstrip())
        if not (above or below):
            return title
        glyphs = self.look.glyphs
        if taken > width - SCROLL_MARKS:
            marks = f"{glyphs.above * above}{glyphs.below * below}"
            for number, span in enumerate(title):
                if gap := _GAP.search(span.text):
                    at = gap.start() + 1
                    # Always two cells, so that the second mark moves or covers nothing.
                    text = f"{span.text[:at]} {marks:<2} {span.text[at + 4 :]}"
                    return (*title[:number], span._replace(text=text), *title[number + 1 :])
            return title
        ways = f" {glyphs.above if above else ' '}{glyphs.below if below else ' '}"
        line = crop(title, width - SCROLL_MARKS, " ")
        return (*line, Span(" " * (width - SCROLL_MARKS - width_of(line)) + ways, "title"))

    async def on_click(self, event: events.Click) -> None:
        """Run the action of the clicked text."""
        if action := action_at(self._at(event.y, self.scroll_offset.y)[0], event.x):
            event.stop()
            await self.app.run_action(action)

    def watch_has_focus(self, _: bool) -> None:
        """Redraw title and cursor, which show the focus; no style rule does."""
        self.update_lines()


def _focused(title: Line) -> Line:
    """Return the title of the pane in focus: its first word becomes a badge of the same width."""
    head, *rest = merged(title) or (Span(""),)
    word = _WORD.search(head.text) if head.role == "title" else None
    if word is None:
        return title
    before, after = head.text[: word.start()], head.text[word.end() :]
    badge = word[0] if after or rest else f"{word[0].rstrip()} "  # a blank at each of its ends
    return (Span(before, "title"), Span(badge, "focus"), Span(after, "title"), *rest)


class CursorView(LinesView):
    """Lines with a cursor that stays in sight."""

    cursor = 0

    async def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked line; a double click opens it."""
        index = event.y - self.title_height + self.scroll_offset.y
        if event.y >= self.title_height and index < self.line_count():
            self.move(index - self.cursor)
            if event.chain > 1:
                await self.app.run_action("screen.open")

    def move(self, lines: int) -> None:
        """Move the cursor, scrolling as little as needed."""
        self.cursor = max(0, min(self.line_count() - 1, self.cursor + lines))
        self.reveal()

    def on_resize(self) -> None:
        """Keep the cursor in sight when a list opens far down, or the window shrinks."""
        self.reveal()

    def reveal(self, last: int = 0) -> None:
        """Scroll to show the cursor and the lines up to ``last``, and draw."""
        self.bring_in_sight(self.cursor, max(self.cursor, last))


SCROLLS: Line = (Span(" Up and Down scroll", "dim"),)
_BRIEF = 24
"""Cells that are enough for the two or three most important keys."""


class FooterView(LinesView):
    """A view of keys and messages: beside, instead of or above the keys, never over data."""

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self._keys: Sequence[Line] = ()
        self._beside: partial[Line] | None = None
        """Makes the keys for the cells that a message leaves in its line."""
        self._made_of: tuple[object, ...] = ()
        """Inputs from which the keys of a whole line were last made."""
        self._in_one_line: Line = ()
        self._height = -1

    def on_mount(self) -> None:
        """Follow the messages."""
        app = cast("ThemedApp", self.app)
        app.messages_signal.subscribe(self, lambda _: self.redraw(), immediate=True)

    def show(self, lines: Sequence[Line], title: Line | None = None) -> None:
        """Show ``lines`` and any messages, in as much height as they take."""
        self._keys = lines if title is None else (title, *lines)
        self.redraw()

    def share(self, above: Sequence[Line], keys: partial[Line]) -> None:
        """Show the keys in one line that messages share, so that nothing on the screen moves."""
        made = (keys.func, keys.args, keys.keywords, self.app.size.width)
        if made != self._made_of:
            self._beside, self._made_of = keys, made
            self._in_one_line = keys(self.app.size.width)
        self._keys = (*above, self._in_one_line)
        self.redraw()

    def show_below(self, view: LinesView, keys: Sequence[Line]) -> None:
        """Show the keys, and how to scroll if the lines of ``view`` do not fit above them.

        The current height of the view doesn't matter: the line about scrolling takes a part of it,
        and would keep itself visible.
        """
        scrolls = 0 < self.screen.size.height - len(keys) <= view.line_count()
        self.show((*keys, *((SCROLLS,) * scrolls)))

    def redraw(self) -> None:
        """Show the messages for this screen, and the keys."""
        app = cast("ThemedApp", self.app)
        messages = app.messages.lines(self.screen, self.look, *app.size)
        shown = (*messages, *self._keys)
        if messages and self._beside is not None:
            page = app.messages.page(self.screen, monotonic())
            shown = (*self._keys[:-1], self._shared(messages, page, self._beside))
        if len(shown) != self._height:
            self._height = len(shown)
            self.styles.height = max(1, self._height)
        super().show(shown)

    def _shared(self, messages: Sequence[Line], page: int, keys: partial[Line]) -> Line:
        """Return the line of the current message, with keys in the rest of it.

        After a turn of each line, the first is shown again, cut to leave room for the keys.
        """
        width, ellipsis = self.app.size.width, self.look.glyphs.ellipsis
        if page < len(messages):
            said = at_most(1, messages[page:], ellipsis)[0]
        else:
            said = self.look.crop(at_most(1, messages, ellipsis)[0], width - _BRIEF - 1)
        room = width - width_of(said) - 1
        return spread(said, keys(room), width) if room >= _BRIEF else said
