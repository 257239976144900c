"""The screen on which what-if questions are typed, answered as they are typed."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.widgets import Input

from zconsole.monitor.frame import VdevRow
from zconsole.scan_report.resilver_time import PastRate, paces
from zconsole.ui.background import begin
from zconsole.ui.dialogs.screens import Lines, TextScreen
from zconsole.ui.panes.what_if import Question, whatif_lines
from zconsole.ui.themed_app import ThemedApp
from zconsole.ui.widgets.lines_view import LinesView

Answer = Callable[[str], Lines]
"""What was typed to the lines that answer it."""


class WhatIfScreen(TextScreen[None]):
    """A prompt over its answer."""

    AUTO_FOCUS = "#prompt"

    def __init__(self, title: str, answer: Answer) -> None:
        super().__init__(title, answer(""))
        self._answer = answer

    def compose(self) -> ComposeResult:
        """The prompt, and the view below it."""
        yield Input(id="prompt", placeholder="raidz2:6x4T  raidz2-0=6x8T  disk=8T", compact=True)
        yield LinesView(id="text")

    def on_input_changed(self) -> None:
        """Answer anew: something was typed, or more is known."""
        self._make = self._answer(self.query_one(Input).value)
        self.update()


def open_what_if(app: ThemedApp, row: VdevRow | None) -> None:
    """Put the screen over the console, about the pool on show and the device at the cursor."""
    frame = app.view_state.frame
    if frame is None:
        return
    known: list[PastRate] = []

    def _answer(text: str) -> Lines:
        question = Question(text, frame, known, row)
        return lambda width: whatif_lines(question, app.view_state.look, width)

    title = f"WHAT IF  {app.view_state.look.text(frame.pool)}"
    screen = WhatIfScreen(title, _answer)
    app.push_screen(screen)

    async def _recall() -> None:
        past = app.view_state.options.past
        reports = await past(frame.guid) if past and frame.guid else ()
        if frame.root is not None:
            known.extend(paces(frame.root, [view.scan for view in frame.scans], reports))
        if screen.is_mounted:
            screen.on_input_changed()

    begin(app, _recall, group="past")
