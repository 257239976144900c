"""The lines at the bottom of a screen: its keys, and messages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, cast

from zconsole.ui.widgets.draw import Line, Span, at_most, spread, width_of
from zconsole.ui.widgets.lines_view import LinesView

if TYPE_CHECKING:
    from zconsole.ui.themed_app import ThemedApp

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
        self.show((*above, self._in_one_line))

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
