"""A screen that asks for one line of text: a path, a number."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Input

from zconsole.ui.dialogs.screens import Dialog, Lines
from zconsole.ui.widgets.draw import Span
from zconsole.ui.widgets.lines_view import LinesView


class AskScreen(Dialog[str | None]):
    """Lines that say what is asked, and the line to answer in; None when left."""

    AUTO_FOCUS = "#answer"

    def __init__(self, title: str, lines: Lines) -> None:
        super().__init__()
        self._title_text = title
        self._make = lines

    def compose(self) -> ComposeResult:
        """The question and the answer."""
        yield LinesView(id="question")
        yield Input(id="answer", compact=True)

    def update(self) -> None:
        """Draw the question anew."""
        view, lines = self.query_one("#question", LinesView), self._make(self.app.size.width)
        view.styles.height = len(lines) + 1
        view.show(lines, (Span(f" {self._title_text}", "title"),))

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """That is the answer; nothing typed is none."""
        self.dismiss(message.value.strip() or None)
