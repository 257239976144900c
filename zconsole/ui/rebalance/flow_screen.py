"""What the screens of a rebalance have in common: what they are drawn with, at any size."""

from __future__ import annotations

from typing import Generic, TypeVar

from textual.screen import Screen

from zconsole.ui.actions.context import FlowContext

_T = TypeVar("_T")


class FlowScreen(Screen[_T], Generic[_T]):
    """A screen of a flow; ``fill`` draws what is known."""

    def __init__(self, context: FlowContext) -> None:
        super().__init__()
        self._flow = context
        self._look = context.look
        self._clock = context.app.view_state.options.clock

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.fill()

    def fill(self) -> None:
        """Draw what is known now."""
        raise NotImplementedError
