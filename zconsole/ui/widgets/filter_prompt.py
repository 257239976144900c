"""The line in which a filter is typed."""

from __future__ import annotations

from textual.widgets import Input


class FilterPrompt(Input):
    """Takes the place of the footer while a filter is typed."""

    def __init__(self, value: str) -> None:
        super().__init__(
            value, id="prompt", placeholder="show only: name, state, path, note", compact=True
        )
