"""The screen on which a plan is made, shown and confirmed; Cancel has the focus."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Button

from zconsole.errors import ZconsoleError
from zconsole.rebalance.backend import Counted
from zconsole.rebalance.planning.plan_document import PlanDocument
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.actions.plan_lines import wrapped
from zconsole.ui.background import begin
from zconsole.ui.dialogs.buttons import ButtonScreen, ChoiceButton, hints
from zconsole.ui.dialogs.screens import Offers
from zconsole.ui.rebalance.plan_lines import counting_lines
from zconsole.ui.widgets.draw import Line, Span
from zconsole.ui.widgets.footer_view import FooterView
from zconsole.ui.widgets.lines_view import LinesView

Body = Callable[[PlanDocument, int], Sequence[Line]]
"""A plan as lines of a width."""


class PlanScreen(ButtonScreen[bool | None]):
    """Returns whether the plan is to be run; None when left, and what still looks at files ends."""

    def __init__(
        self,
        context: FlowContext,
        steps: AsyncIterator[Counted | PlanDocument],
        body: Body,
        denied: str,
        command: Callable[[], str],
        size: Callable[[PlanDocument], int],
    ) -> None:
        """``command`` does the same on the command line; ``size``: bytes that a plan moves."""
        super().__init__()
        self._look = context.look
        self._clock = context.app.view_state.options.clock
        self._steps = steps
        self._body = body
        self._denied = denied
        self._command = command
        self._bytes = size
        self._counted = Counted()
        self._heard = self._clock()
        self._problem = ""
        self.plan: PlanDocument | None = None
        """The plan, once it is made."""

    def compose(self) -> ComposeResult:
        """The plan, and the two buttons."""
        yield LinesView(id="plan", focusable=True)
        with Horizontal(id="choice"):
            yield ChoiceButton("Cancel", id="cancel")
            yield ChoiceButton("Run", id="run")
        yield FooterView(id="hint")

    def on_mount(self) -> None:
        """Draw, and have the plan made."""
        view = self.query_one("#plan", LinesView)
        self.set_focus(view)
        self.watch(view, "scroll_y", self.update, init=False)
        begin(self, self._make, group="plan", exit_on_error=False)
        self.set_interval(1.0, self._tick)

    async def _make(self) -> None:
        try:
            async for step in self._steps:
                self._heard = self._clock()
                if isinstance(step, PlanDocument):
                    self.plan = step
                else:
                    self._counted = step
                self.update()
        except ZconsoleError as error:
            self._problem = str(error)
        self.update()
        self.set_focus(self.query_one("#cancel", Button))

    def _tick(self) -> None:
        if self.plan is None and not self._problem:
            self.update()

    def copies(self) -> Offers:
        """The command of the plan."""
        return (("command", self._command()),)

    def draw(self) -> None:
        """Draw what there is to show now."""
        made = self.plan
        able = made is not None and made.refused is None and self._bytes(made) > 0
        ready = able and not self._denied
        over = made is not None or bool(self._problem)
        self.query_one("#choice").display = over
        self.query_one("#run", Button).display = ready
        title = " REBALANCE  the plan" if made else " REBALANCE  making the plan"
        view = self.query_one("#plan", LinesView)
        view.show(self._lines(), (Span(title, "title"),))
        more = [("Down", "more")] * view.has_more
        keys = [*more, ("Left Right", "buttons"), ("Enter", "select")] if over else []
        line = hints([*keys, ("Esc", "cancel")], self._look, self.app.size.width)
        self.query_one("#hint", FooterView).show((line,))

    def _lines(self) -> Sequence[Line]:
        width = self.app.size.width
        if self._problem:
            return tuple(wrapped(self._problem, "error", self._look, width, " "))
        if self.plan is not None:
            return self._body(self.plan, width)
        silent = self._clock() - self._heard
        return counting_lines(self._counted, silent, self._look, width)

    def on_button_pressed(self, message: Button.Pressed) -> None:
        """Cancel, or run."""
        message.stop()
        self.dismiss(message.button.id == "run")
