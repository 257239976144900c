"""The line that is typed into."""

from __future__ import annotations

from textual.widgets import Input


class Prompt(Input):
    """An input whose cursor stands still, so that it is seen at any moment and costs no bytes.

    Its left edge says that it is in focus, also without color.
    """

    def __init__(
        self,
        value: str = "",
        *,
        id: str,  # noqa: A002
        placeholder: str = "",
        select_on_focus: bool = True,
    ) -> None:
        super().__init__(value, placeholder=placeholder, id=id, select_on_focus=select_on_focus)
        self.cursor_blink = False
