"""The scan pane's widget: its graph scrolls through the time of the scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zconsole.timeline.scan_rate import PastRates
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.rate_graph import graph_width
from zconsole.ui.widgets.draw import Line, Span
from zconsole.ui.widgets.graph import graph_values
from zconsole.ui.widgets.lines_view import LinesView

_ALL_SHOWN = "no older history: the graph shows all from the start on"


class ScanPane(LinesView):
    """Lines of the scans, the first of them its title; the graph ends now, or earlier."""

    def __init__(self, *, id: str, repaint: Callable[[], None]) -> None:  # noqa: A002
        """``repaint`` is called when the graph shows another time."""
        super().__init__(id=id, focusable=True)
        self.until: float | None = None
        """Epoch seconds at which the graph ends; None for now."""
        self._repaint = repaint
        self._past = PastRates()
        self._steps = 0

    @property
    def has_past(self) -> bool:
        """Whether there is a graph to scroll."""
        return bool(self._past.rates)

    def show_scan(self, lines: Sequence[Line]) -> None:
        """Show these lines, the first as the title: that pane in focus is seen by its title."""
        head, *rest = lines
        title = (Span(head[0].text, "title"), *head[1:]) if head else (Span(" ", "title"),)
        self.show(rest, title)

    def follow(self, past: PastRates | None, width: int, rows: int, look: DisplayFormat) -> None:
        """Take what the graph shows, in how many columns of the pane and rows.

        Without a past it ends now again.
        """
        self._past = past or PastRates()
        self._steps = graph_values(graph_width(width, rows, look.number), rows, look.glyphs)
        if self.until is not None and not self._past.begin < self.until < self._past.end:
            self.until = None

    def _scroll(self, steps: int) -> None:
        """Show an earlier (below 0) or later time of the scan, as far as there is one."""
        past, before = self._past, self.until
        first = past.begin + min(self._steps, len(past.rates)) * past.step
        wanted = max(first, (self.until or past.end) + steps * past.step)
        self.until = wanted if wanted < past.end else None
        if steps < 0 and self.until == before:
            self.notify(_ALL_SHOWN, timeout=3)
        self._repaint()

    def scroll_time(self, direction: int) -> None:
        """Go an eighth of what is shown back (-1) or on (1)."""
        self._scroll(direction * max(1, self._steps // 8))

    def page(self, pages: int) -> None:
        """Go half of what is shown back or on; without a graph, scroll."""
        if not self.has_past:
            super().page(pages)
            return
        self._scroll(pages * max(1, self._steps // 2))

    def edge(self, direction: int) -> None:
        """Go to the beginning of the scan, or back to now; without a graph, scroll."""
        if not self.has_past:
            super().edge(direction)
            return
        self._scroll(direction * len(self._past.rates))
