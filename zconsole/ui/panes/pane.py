"""Base class of the panes of the main screen, and the data they are drawn from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar, NamedTuple

from zconsole.timeline.frame import Frame
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.pane_layout import Place, Wish
from zconsole.ui.widgets.lines_view import LinesView
from zconsole.zfs.sources.base import Capabilities


class Scene(NamedTuple):
    """Data that the panes are drawn from."""

    frame: Frame
    look: DisplayFormat
    source: Capabilities | None
    """Capabilities of the source that reads the pools."""
    width: int
    """Columns of the pane."""
    height: int
    """Lines of the terminal."""
    header: int = 0
    """Lines above the panes."""
    zoomed: str | None = None
    """Pane that has the whole screen."""
    compact: bool = False
    """Whether panes omit what is dispensable."""
    below: Collection[Wish] = ()
    """Wishes of the panes below this one."""
    lines: int = 0
    """Lines of the pane, including its title; 0 if hidden."""

    @property
    def room(self) -> int:
        """Lines for all panes: those without the header and the footer."""
        return max(0, self.height - self.header - 1)


class Pane(LinesView):
    """A view of the main screen that draws part of a frame."""

    pane_id: ClassVar[str]
    """Name in the configuration, and id of the widget."""
    place: ClassVar[Place]
    keys: ClassVar[Sequence[tuple[str, str]]] = ()
    """Titles and labels of keys with an effect in this pane."""

    goes_sideways: ClassVar[bool] = False
    """Whether Left and Right have an effect in it."""

    def __init__(self) -> None:
        super().__init__(id=self.pane_id, focusable=True)

    def wish(self, scene: Scene) -> Wish:
        """Return the lines it would fill; this must not depend on current values or messages."""
        raise NotImplementedError

    def full(self, scene: Scene) -> int:
        """Return the lines it would fill without saving room; by default those of its wish."""
        return self.wish(scene).lines

    def paint(self, scene: Scene) -> None:
        """Draw a frame in the columns and lines of the scene."""
        raise NotImplementedError

    @property
    def own_keys(self) -> Sequence[tuple[str, str]]:
        """Keys that have something to act on now."""
        return self.keys

    def sideways(self, direction: int) -> None:
        """Handle Left (-1) and Right (1)."""

    def to_now(self) -> bool:
        """Return from an earlier time to now; return whether an earlier time was shown."""
        return False
