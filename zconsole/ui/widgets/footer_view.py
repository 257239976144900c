"""The lines at the bottom of a screen: the keys that work there, and messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from zconsole.ui.widgets.draw import Line
from zconsole.ui.widgets.lines_view import LinesView

if TYPE_CHECKING:
    from zconsole.ui.themed_app import ThemedApp


class FooterView(LinesView):
    """Shows messages in place of the keys, or above them: they never cover data."""

    def __init__(self, *, id: str, keeps_keys: bool = True) -> None:  # noqa: A002
        """Without ``keeps_keys`` a message of one line moves nothing else on the screen."""
        super().__init__(id=id)
        self._keeps_keys = keeps_keys
        self._keys: Sequence[Line] = ()
        self._height = -1

    def on_mount(self) -> None:
        """Follow what is said."""
        app = cast("ThemedApp", self.app)
        app.messages_signal.subscribe(self, lambda _: self.tell(), immediate=True)

    def show(self, lines: Sequence[Line], title: Line | None = None) -> None:
        """Show ``lines``, and what messages there are, in as much height as they take."""
        self._keys = lines if title is None else (title, *lines)
        self.tell()

    def show_whole(self, lines: Sequence[Line]) -> None:
        """See LinesView.show_whole: it is never any less."""
        self.show(lines)

    def tell(self) -> None:
        """Show the messages there are for this screen, and the keys."""
        app = cast("ThemedApp", self.app)
        messages = app.messages.lines(self.screen, app.view_state.look, *app.size)
        keys = self._keys if self._keeps_keys or not messages else ()
        shown = (*messages, *keys)
        if len(shown) != self._height:
            self._height = len(shown)
            self.styles.height = max(1, self._height)
        super().show(shown)
