"""The command palette: textual's, made safe against being closed during a search."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

from textual.app import App, SystemCommand
from textual.command import CommandList, CommandPalette
from textual.css.query import NoMatches
from textual.worker import Worker

from zconsole.ui.view_state import ViewState

REPORTS = (
    "Reports of past scans: run zconsole report in a shell (--list names them). One is kept for"
    " each scan that a console or zconsole watch saw; a demo keeps none."
)


def offered(app: App[Any], state: ViewState, save: Callable[[], object]) -> Iterator[SystemCommand]:
    """Yield the palette's commands: all with a key, and some without; ``save`` saves the look."""
    for title, about, action in state.look.keys.choices(state.denied):
        yield SystemCommand(title, about, partial(app.call_later, app.run_action, action))
    if (config := state.options.config) is not None and state.options.saves:
        about = f"theme, units, sort and panes, to {config.path}"
        yield SystemCommand("Save how the console looks", about, save)
    tell = partial(app.notify, REPORTS, timeout=12)
    yield SystemCommand("Report of a past scan", "how to write, list and compare them", tell)


class ConsolePalette(CommandPalette):
    """Textual's palette without its crash on a late search.

    Textual's search looks for its list even after the palette is closed, which would end the
    console.
    """

    def run_worker(  # type: ignore[override]
        self, work: Callable[[], Coroutine[Any, Any, Any]], *args: Any, **options: Any
    ) -> Worker[Any]:
        """Run a search; one that finds no list any more ends silently."""
        return super().run_worker(partial(self._while_open, work), *args, **options)

    async def _while_open(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        try:
            return await work()
        except NoMatches:
            if self.query(CommandList):
                raise
            return None
