"""The palette: textual's own, which survives being closed while it searches."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from textual.command import CommandList, CommandPalette
from textual.css.query import NoMatches
from textual.worker import Worker


class ConsolePalette(CommandPalette):
    """Textual's search looks for its list also once that is gone, which would end the console."""

    def run_worker(  # type: ignore[override]
        self, work: Callable[[], Coroutine[Any, Any, Any]], *args: Any, **options: Any
    ) -> Worker[Any]:
        """Run a search; one that finds the list gone has nobody to tell what it found."""
        return super().run_worker(partial(self._while_open, work), *args, **options)

    async def _while_open(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        try:
            return await work()
        except NoMatches:
            if self.query(CommandList):
                raise
            return None
