"""The widget everything is drawn with: lines, of which only the changed ones are sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from zconsole.ui.theme.styles import Palette
from zconsole.ui.widgets.draw import Line, Span, merged, width_of

if TYPE_CHECKING:
    from zconsole.ui.themed_app import ThemedApp

_STRIPS = 512


class LinesView(ScrollView, inherit_bindings=False):
    """Shows lines under an optional title line that does not scroll.

    Textual sends every cell of what is marked dirty, so ``show`` marks only lines that differ
    from what is on the screen, and lines out of sight are not even asked for.
    """

    # Before the key behind it is looked at: a slow link delivers what was typed in one packet.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "screen.filter", show=False, priority=True)
    ]

    def __init__(self, *, id: str, focusable: bool = False) -> None:  # noqa: A002
        super().__init__(id=id)
        self.can_focus = focusable
        self._lines: Sequence[Line] = ()
        self._title: Line | None = None
        self._palette: Palette = {}
        self._drawn: dict[int, tuple[Line, bool]] = {}
        self._strips: LRUCache[tuple[Line, bool, int], Strip] = LRUCache(_STRIPS)

    def on_mount(self) -> None:
        """Be drawn in the styles of the app's theme, whichever is on."""
        self.app.theme_changed_signal.subscribe(self, lambda _: self._dress())
        self._dress()

    def _dress(self) -> None:
        """Take the present theme's styles, and draw everything anew."""
        self._palette = cast("ThemedApp", self.app).palette
        self._strips.clear()
        self._drawn.clear()
        self.refresh()

    def show(self, lines: Sequence[Line], title: Line | None = None) -> None:
        """Show ``lines``; what is on the screen already is not sent again."""
        self._lines = lines
        self._title = title
        self.update_lines()

    def show_whole(self, lines: Sequence[Line]) -> None:
        """Show ``lines`` in as much height as they take: nothing of them is left out."""
        self.styles.height = max(1, len(lines))
        self.show(lines)

    def line_count(self) -> int:
        """How many lines there are below the title."""
        return len(self._lines)

    def line_at(self, index: int) -> Line:
        """The line at ``index``, 0 the first below the title."""
        return self._lines[index]

    @property
    def has_title(self) -> bool:
        """Whether a line stays at the top."""
        return self._title is not None

    def title_line(self) -> Line:
        """The line that stays at the top."""
        return self._title or ()

    def selected(self, _: int) -> bool:
        """Whether the cursor is on that line."""
        return False

    def update_lines(self) -> None:
        """Mark the visible lines that differ from what was drawn last."""
        width, height = self.size  # textual works it out, and the scroll offset, at every look
        top = self.scroll_offset.y
        total = Size(width, self.line_count() + int(self.has_title))
        if total != self.virtual_size:
            self.virtual_size = total
        dirty = [y for y in range(height) if self._at(y, top) != self._drawn.get(y)]
        if dirty:
            self.refresh(*(Region(0, y, width, 1) for y in dirty))

    def move(self, lines: int) -> None:
        """Scroll by a number of lines."""
        self.scroll_to(y=self.scroll_offset.y + lines, animate=False, immediate=True)

    def page(self, pages: int) -> None:
        """Scroll, or move the cursor, by screens full."""
        self.move(pages * max(1, self.size.height - 2))

    def edge(self, direction: int) -> None:
        """Go to the first or to the last line."""
        self.move(direction * (self.line_count() + 1))

    def render_line(self, y: int) -> Strip:
        """The strip of one line of the widget, the title first."""
        line, selected = self._drawn[y] = self._at(y, self.scroll_offset.y)
        width = self.size.width
        key = (line, selected, width)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._strips[key] = self._strip(line, selected, width)
        return strip

    def _at(self, y: int, top: int) -> tuple[Line, bool]:
        """What stands in line ``y`` of the widget, where it is scrolled down by ``top`` lines."""
        if self.has_title:
            if y == 0:
                return self._focused_title(self.title_line()), False
            y -= 1
        index = y + top
        if index >= self.line_count():
            return (), False
        return self.line_at(index), self.selected(index)

    def _focused_title(self, title: Line) -> Line:
        """The title of the pane in focus stands out from the others."""
        if not self.has_focus:
            return title
        return tuple(
            Span(span.text, "focus" if span.role == "title" else span.role) for span in title
        )

    def _strip(self, line: Line, selected: bool, width: int) -> Strip:
        plain, base = Style.null(), self._palette.get("cursor") if selected else None
        used = width_of(line)
        last = line[-1].role if line and line[-1].role in ("title", "focus") else ""
        filled = merged((*line, Span(" " * max(0, width - used), last)))
        segments = [
            Segment(span.text, self._palette.get(span.role, plain) + base) for span in filled
        ]
        return Strip(segments, max(used, width)).crop(0, width)

    def watch_has_focus(self, focused: bool) -> None:
        """Redraw the title and the cursor, which show the focus."""
        super().watch_has_focus(focused)
        self.update_lines()


class CursorView(LinesView):
    """Lines with a cursor, which stays in sight."""

    cursor = 0

    def selected(self, index: int) -> bool:
        """Whether the cursor is on that line."""
        return index == self.cursor

    def move(self, lines: int) -> None:
        """Move the cursor, and scroll as little as shows it."""
        self.cursor = max(0, min(self.line_count() - 1, self.cursor + lines))
        self.reveal()

    def on_resize(self) -> None:
        """Keep the cursor in sight: where a list opens far down, and in a smaller window."""
        self.reveal()

    def reveal(self) -> None:
        """Scroll so that the cursor is in sight, and draw."""
        self.update_lines()  # the lines there are now say how far there is to scroll
        room = max(1, self.size.height - int(self.has_title))
        top = self.scroll_offset.y
        wanted = min(max(top, self.cursor - room + 1), self.cursor)
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, immediate=True)
            self.update_lines()
