"""A pane of the main screen: what it wants, what it draws, and what keys do in it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar, NamedTuple

from zconsole.timeline.frame import Frame
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.pane_layout import Place, Wish
from zconsole.ui.widgets.lines_view import LinesView
from zconsole.zfs.sources.base import Capabilities


class Scene(NamedTuple):
    """What the panes are drawn for."""

    frame: Frame
    look: DisplayFormat
    source: Capabilities | None
    """What the pools are read with."""
    width: int
    """Columns of the pane."""
    height: int
    """Lines of the terminal."""
    header: int = 0
    """Lines above the panes."""
    zoomed: str | None = None
    """The pane that has the whole screen."""
    compact: bool = False
    """Whether panes leave out what can be done without."""
    below: Collection[Wish] = ()
    """What the panes below this one want."""
    lines: int = 0
    """Lines that the pane gets, its title included; 0: it is hidden."""

    @property
    def room(self) -> int:
        """Lines for all panes: what header and line of keys leave."""
        return max(0, self.height - self.header - 1)


class Pane(LinesView):
    """Lines of a frame that the main screen gives a place; the class of each names its own."""

    pane_id: ClassVar[str]
    """Its word in the configuration, and its id."""
    place: ClassVar[Place]
    keys: ClassVar[Sequence[tuple[str, str]]] = ()
    """Keys that do something of their own in it, by their titles, each with a word for it."""

    goes_sideways: ClassVar[bool] = False
    """Whether Left and Right do something in it."""

    def __init__(self) -> None:
        super().__init__(id=self.pane_id, focusable=True)

    def wish(self, scene: Scene) -> Wish:
        """How many lines it would fill; that must not depend on what is known or said now."""
        raise NotImplementedError

    def full(self, scene: Scene) -> int:
        """How many lines it would fill with all that it has, where it can do with less."""
        return self.wish(scene).lines

    def paint(self, scene: Scene) -> None:
        """Draw a frame in the columns and lines that the scene has for it."""
        raise NotImplementedError

    @property
    def own_keys(self) -> Sequence[tuple[str, str]]:
        """The keys that have something to act on now."""
        return self.keys

    def sideways(self, direction: int) -> None:
        """Do what Left (-1) and Right (1) do in it."""

    def to_now(self) -> bool:
        """Return from an earlier time to now; whether there was one."""
        return False
