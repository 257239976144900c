"""Screens over the main one: text to read, and a list to pick from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.app import ComposeResult
from textual.screen import Screen

from zconsole.ui.theme.styles import Palette
from zconsole.ui.widgets.draw import Line, Span, at_most
from zconsole.ui.widgets.lines_view import LinesView

Lines = Callable[[int], Sequence[Line]]
"""Lines for a width."""
About = Callable[[int, int], Sequence[Line]]
"""What there is to say of the line at an index, for a width."""
_ABOUT_SHARE = 3
"""The part of the screen that may tell of the line at the cursor: one in so many."""


class TextScreen(Screen[None]):
    """Lines to scroll through."""

    def __init__(self, title: str, lines: Lines, palette: Palette) -> None:
        super().__init__()
        self._title_text = title
        self._make = lines
        self._palette = palette

    def compose(self) -> ComposeResult:
        """The one view."""
        yield LinesView(id="text", focusable=True)

    def on_mount(self) -> None:
        """Draw, ready to scroll."""
        view = self.query_one("#text", LinesView)
        view.dress(self._palette)
        view.focus()
        self._fill()

    def on_resize(self) -> None:
        """Wrap to the new width."""
        self._fill()

    def _fill(self) -> None:
        title = (Span(f" {self._title_text}", "title"),)
        self.query_one("#text", LinesView).show(self._make(self.app.size.width), title)


class PickView(LinesView):
    """Lines with a cursor."""

    def __init__(self, start: int, moved: Callable[[int], None]) -> None:
        super().__init__(id="pick", focusable=True)
        self.cursor = start
        self._moved = moved

    def selected(self, index: int) -> bool:
        """Whether the cursor is on that line."""
        return index == self.cursor

    def move(self, lines: int) -> None:
        """Move the cursor and tell who wants a preview."""
        last = self.line_count() - 1
        wanted = max(0, min(last, self.cursor + lines))
        if wanted == self.cursor:
            return
        self.cursor = wanted
        self._reveal()
        self._moved(wanted)
        self.update_lines()

    def on_resize(self) -> None:
        """Keep the cursor in sight: where a list opens far down, and in a smaller window."""
        self._reveal()

    def _reveal(self) -> None:
        room = max(1, self.size.height - int(self.has_title))
        top = min(max(self.scroll_offset.y, self.cursor - room + 1), self.cursor)
        self.scroll_to(y=top, animate=False, immediate=True)


def no_preview(index: int) -> None:
    """For lists where moving the cursor changes nothing."""


def nothing_about(index: int, width: int) -> Sequence[Line]:
    """For lists whose lines say all there is."""
    return ()


class PickScreen(Screen[int | None]):
    """A list over the main screen; returns the index picked, None when left with Esc."""

    def __init__(
        self,
        title: str,
        lines: Lines,
        palette: Palette,
        *,
        start: int = 0,
        wide: bool = False,
        moved: Callable[[int], None] = no_preview,
        about: About = nothing_about,
        ellipsis: str = "…",
    ) -> None:
        super().__init__(classes="wide" if wide else "side")
        self._title_text = title
        self._make = lines
        self._palette = palette
        self._start = start
        self._preview = moved
        self._about = about
        self._ellipsis = ellipsis

    def compose(self) -> ComposeResult:
        """The list, and below it what there is to say of the line at the cursor."""
        yield PickView(self._start, self._moved)
        yield LinesView(id="about")

    @property
    def view(self) -> PickView:
        """The list."""
        return self.query_one(PickView)

    def on_mount(self) -> None:
        """Draw, with the cursor on the present choice."""
        self.dress(self._palette)
        self.view.focus()

    def dress(self, palette: Palette) -> None:
        """Paint with these styles from now on."""
        for view in self.query(LinesView):
            view.dress(palette)
        self.update()

    def update(self) -> None:
        """Draw the lines anew."""
        title = (Span(f" {self._title_text}", "title"),)
        self.view.show(self._make(self.view.size.width or self.app.size.width), title)
        told = [len(self._said(index)) for index in range(self.view.line_count())]
        # As high as the longest, so that nothing jumps while the cursor moves.
        self.query_one("#about").styles.height = max(told, default=0)
        self._tell()

    def on_resize(self, event: events.Resize) -> None:
        """Draw for the new width, once the list has it."""
        self.call_after_refresh(self.update)

    def _moved(self, index: int) -> None:
        self._tell()
        self._preview(index)

    def _tell(self) -> None:
        self.query_one("#about", LinesView).show(self._said(self.view.cursor))

    def _said(self, index: int) -> Sequence[Line]:
        width, height = self.app.size
        most = max(1, height // _ABOUT_SHARE)
        return at_most(most, self._about(index, width), self._ellipsis)

    def action_open(self) -> None:
        """Return what the cursor is on."""
        self.dismiss(self.view.cursor)
