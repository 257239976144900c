"""A screen that ends in a row of buttons; Left and Right move between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType
from textual.content import Content
from textual.css.query import QueryType
from textual.geometry import Size
from textual.screen import ScreenResultType
from textual.widget import Widget
from textual.widgets import Button, Input

from zconsole.ui.dialogs.screens import Dialog
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.keys import bindings
from zconsole.ui.panes.help import help_key, key_row
from zconsole.ui.widgets.draw import Line, Span

if TYPE_CHECKING:
    from zconsole.ui.themed_app import ThemedApp


class ChoiceButton(Button):
    """A button on one line, with a pointer before its label while it has the focus."""

    def __init__(self, label: str, *, id: str) -> None:  # noqa: A002
        super().__init__(label, id=id, compact=True)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """Return the width of label and pointer; the pointer's cells are always reserved."""
        return super().get_content_width(container, viewport) + len(_NO_POINTER)

    def render(self) -> Content:
        """Return the label after the pointer, or after blanks."""
        glyphs = cast("ThemedApp", self.app).view_state.look.glyphs
        mark = f"{glyphs.pointer} " if self.has_focus else _NO_POINTER
        return Content(mark) + Content.from_text(self.label)


_NO_POINTER = "  "


class ButtonScreen(Dialog[ScreenResultType]):
    """A screen with buttons below its text: Left and Right move among them, as Tab does.

    Shift+Tab goes to the text from any of them.
    """

    groups: ClassVar[tuple[str, ...]] = ("Buttons",)
    read_first = True
    BINDINGS: ClassVar[list[BindingType]] = bindings("Buttons")

    def action_button(self, direction: int) -> None:
        """Focus the next button in a direction; from elsewhere, the first."""
        buttons = [button for button in self.query(Button) if button.display]
        here = self.focused
        if isinstance(here, Button) and here in buttons:
            index = min(max(buttons.index(here) + direction, 0), len(buttons) - 1)
            self.set_focus(buttons[index])  # at once: the next key may already be here
        elif buttons:
            beyond = isinstance(here, Input) and direction > 0  # it stands after the first button
            self.set_focus(buttons[min(int(beyond), len(buttons) - 1)])

    def focus_previous(self, selector: str | type[QueryType] = "*") -> Widget | None:
        """Leave the row of buttons upward at once, so that Enter then presses none of them."""
        chain = self.focus_chain
        if self.focused in chain[1:]:
            self.set_focus(chain[0])
            return chain[0]
        return super().focus_previous(selector)

    def action_press_button(self) -> None:
        """Press the button in focus, as textual does on its own; an action, so that help has it."""
        if isinstance(self.focused, Button):
            self.focused.press()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let Left and Right move through typed text first, and from its ends to the buttons."""
        here = self.focused
        if action == "button" and isinstance(here, Input):
            end = len(here.value) if parameters[0] == 1 else 0
            return here.cursor_position == end
        if action == "press_button" and not isinstance(self.focused, Button):
            return False
        return super().check_action(action, parameters)


def hints(parts: Sequence[Line], look: DisplayFormat, width: int, *, typing: bool = False) -> Line:
    """Return the keys and their words, as many as fit; help and the last key always fit.

    ``typing``: ``?`` would be typed, so F1 opens the help.
    """
    return key_row(parts[:-1], (*help_key(look, typing=typing), Span("  "), *parts[-1]), width)
