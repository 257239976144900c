"""The screen of all pools: a line each, the worst first; the cursor stays on its pool."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole.timeline.frame import Frame
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.panes.overview import by_trouble, overview_about, overview_head, overview_lines
from zconsole.ui.view_state import ViewState, place_of
from zconsole.ui.widgets.draw import Line


class OverviewScreen(PickScreen):
    """Returns the index in the view state of the pool picked."""

    groups = ("Menu",)

    def __init__(self, state: ViewState) -> None:
        self._state = state
        self._shown: tuple[Frame, ...] = by_trouble(state.frames)
        start = place_of(state.pool, self._shown)
        super().__init__("POOLS", self._lines, start=start, wide=True, about=self._reasons)

    def title_line(self, width: int) -> Line:
        """The headings."""
        return overview_head(self._shown, self._state.look, width)

    def draw(self) -> None:
        """Draw the newest round; the cursor stays on its pool."""
        at = self._shown[self.view.cursor].pool if self.view.cursor < len(self._shown) else None
        self._shown = by_trouble(self._state.frames)
        self.view.cursor = place_of(at, self._shown)
        super().draw()

    def action_open(self) -> None:
        """Return the pool at the cursor."""
        names = [frame.pool for frame in self._state.frames]
        pool = self._shown[self.view.cursor].pool
        self.dismiss(names.index(pool) if pool in names else None)

    def _reasons(self, index: int, width: int) -> Sequence[Line]:
        if index >= len(self._shown):
            return ()
        return overview_about(self._shown[index], self._state.look, width)

    def _lines(self, width: int) -> Sequence[Line]:
        return overview_lines(self._shown, self._state.look, width)
