"""The help of a screen, and behind the same key the legend of what the console draws."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.binding import BindingType

from zconsole.ui.dialogs.screens import Dialog, TextScreen
from zconsole.ui.keys import bindings
from zconsole.ui.panes.help import help_lines, legend_lines, screen_help_lines
from zconsole.ui.view_state import ViewState
from zconsole.ui.widgets.draw import Line
from zconsole.ui.widgets.lines_view import LinesView

_PARTS = ("HELP", "LEGEND")


class HelpScreen(TextScreen[None]):
    """Two parts, of which one is shown."""

    groups = ("Help",)
    BINDINGS: ClassVar[list[BindingType]] = bindings("Help")

    def __init__(self, state: ViewState, about: Dialog[Any] | None, interval: float) -> None:
        """``about``: the screen it tells of; None for the main screen."""
        super().__init__(_PARTS[0], self._lines)
        self._state = state
        # As they are now: those of a dialog may change with what it asks.
        self._groups = about.help_groups if about else None
        self._topics = about.topics if about else ()
        self._interval = interval

    def action_turn(self) -> None:
        """Show the other part, from its top."""
        self._title_text = _PARTS[1 - _PARTS.index(self._title_text)]
        self.query_one("#text", LinesView).edge(-1)
        self.update()

    def _lines(self, width: int) -> tuple[Line, ...]:
        look = self._state.look
        if self._title_text == _PARTS[1]:
            return legend_lines(look, width, self._interval)
        if self._groups is None:
            return help_lines(look, width, self._state.denied)
        return screen_help_lines(self._groups, look, width, self._topics)
