"""The screen with zpool's own words on a pool: to read, filter, copy, and save for others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from zconsole.errors import ZconsoleError
from zconsole.ui.dialogs.screens import FilteredScreen, Offers
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.new_file import save_new
from zconsole.ui.themed_app import begin
from zconsole.ui.widgets.draw import Line, Lines, Span
from zconsole.zfs.zpool_output import ZpoolOutput

Ask = Callable[[], Awaitable[tuple[ZpoolOutput, ...]]]
"""Returns what zpool says now. Raises ZconsoleError."""


class ZpoolScreen(FilteredScreen[None], groups=("Zpool",)):
    """What zpool says about a pool, as of when the screen was opened."""

    copies_lines = True
    hint = "show only the lines with this text"

    def __init__(self, pool: str, ask: Ask) -> None:
        super().__init__(f"ZPOOL OUTPUT  {pool}", self._lines)
        self._ask = ask
        self._outputs: tuple[ZpoolOutput, ...] = ()
        """Empty until zpool has answered."""

    def on_mount(self) -> None:
        """Ask zpool; textual then also calls the handler of Dialog."""
        begin(self, self._fill, group="fill")

    async def _fill(self) -> None:
        try:
            self._outputs = await self._ask()
        except ZconsoleError as error:
            self.dismiss(None)
            self.app.answer(str(error), 6)
        else:
            self.update()

    def title_line(self, width: int) -> Line:
        """Return the title, with the filter."""
        title = super().title_line(width)
        said = f"  only {self.look.text(self.wanted)}" if self.wanted else ""
        return (*title, Span(said, "notice"))

    def _lines(self, look: DisplayFormat, width: int) -> Lines:
        if not self._outputs:
            return ((Span(" asking zpool", "dim"),),)
        lines: list[Line] = []
        for output in self._outputs:
            lines += [(), *look.wrapped(output.heading, width, "bold")][not lines :]
            found = (line for line in output.lines if self.wanted.casefold() in line.casefold())
            lines += [part for line in found for part in look.wrapped(line, width)]
        return tuple(lines)

    def copies(self) -> Offers:
        """Return each output, and all of them together."""
        named = [(output.command.split()[1], output.text) for output in self._outputs]
        return (("all", self._text), *named) if len(named) > 1 else tuple(named)

    @property
    def _text(self) -> str:
        return "\n\n".join(output.text for output in self._outputs)

    def action_save(self) -> None:
        """Save all outputs to a new file in the directory where the console was started."""
        if self._outputs:
            save_new(self.app, f"{self._text}\n", "report", "txt")
