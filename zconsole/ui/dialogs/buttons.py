"""A screen that ends in a row of buttons: Left and Right go from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.screen import ScreenResultType
from textual.widgets import Button

from zconsole.ui.dialogs.screens import Dialog
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.keys import bindings
from zconsole.ui.panes.help import help_key, key_row
from zconsole.ui.widgets.draw import Line, Span


class ButtonScreen(Dialog[ScreenResultType]):
    """Whatever has the focus, Left and Right bring it to a button; Tab also reaches the rest."""

    groups: ClassVar[tuple[str, ...]] = ("Buttons",)
    BINDINGS: ClassVar[list[BindingType]] = bindings("Buttons")

    def action_button(self, direction: int) -> None:
        """Focus the next button in a direction; from elsewhere, the first."""
        buttons = [button for button in self.query(Button) if button.display]
        here = self.focused
        if isinstance(here, Button) and here in buttons:
            index = min(max(buttons.index(here) + direction, 0), len(buttons) - 1)
            buttons[index].focus()
        elif buttons:
            buttons[0].focus()


def hints(
    pairs: Sequence[tuple[str, str]], look: DisplayFormat, width: int, *, typing: bool = False
) -> Line:
    """Keys and their words, as many as fit whole; the key of the help and the last pair always do.

    ``typing``: where ``?`` would be typed, F1 opens the help.
    """
    parts = [(Span(f"{key} ", "key"), Span(word, "dim")) for key, word in pairs]
    return key_row(parts[:-1], (*help_key(look, typing=typing), Span("  "), *parts[-1]), width)
