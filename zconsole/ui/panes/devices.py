"""Device list: a cursor over the tree of vdevs, folded, filtered or sorted.

Only visible rows are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from zconsole.config.settings import COLUMNS
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import is_group
from zconsole.timeline.events import BROKEN
from zconsole.timeline.frame import Frame, Pairs, VdevRow
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.device_columns import (
    NO_NEEDS,
    Needs,
    Panel,
    TreeFacts,
    TreeLine,
    arrange,
    common_scale,
    heading,
    is_noted,
    row_line,
    sort_key,
    tree_facts,
)
from zconsole.ui.panes.device_detail import detail_lines, detail_room
from zconsole.ui.panes.device_graphs import graph_room, scrolled
from zconsole.ui.panes.pane import Pane, Scene, Wish
from zconsole.ui.widgets.draw import Line, Span, merged, short_names
from zconsole.ui.widgets.graph import graph_values
from zconsole.ui.widgets.lines_view import CursorView

CLASS_TITLES = {
    "special": "special",
    "dedup": "dedup",
    "log": "logs",
    "cache": "cache",
    "spare": "spares",
}
"""Titles that ``zpool status`` prints above the vdevs of these classes (print_class_vdevs)."""

SORTS: dict[str, Callable[[VdevRow], float]] = {
    "tree": lambda _: 0.0,
    "latency": lambda row: -(row.rates.latency or 0.0),
    "busy": lambda row: -(row.rates.busy or 0.0),
    "read": lambda row: -(row.rates.read or 0.0),
    "write": lambda row: -(row.rates.write or 0.0),
    "errors": lambda row: -float(row.vdev.errors.total),
}
"""Orders that ``s`` cycles through; all except the tree list only leaves, the largest first."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Arrangement of the list by the operator."""

    sort: str = "tree"
    filter: str = ""
    folded: frozenset[str] = frozenset()


def items(rows: Sequence[VdevRow], arrangement: Arrangement) -> tuple[TreeLine, ...]:
    """Return the lines for ``rows``, which are in tree order."""
    kept = rows if not arrangement.filter else _filtered(rows, arrangement.filter)
    if arrangement.sort != "tree":
        leaves = [row for row in kept if not row.vdev.children]
        leaves.sort(key=SORTS[arrangement.sort])
        return tuple(TreeLine(row.key, 0, row) for row in leaves)
    folded = () if arrangement.filter else arrangement.folded
    lines, group, hiding = list[TreeLine](), "normal", False
    for row in kept:
        if hiding and row.depth > lines[-1].depth:
            lines[-1] = lines[-1]._replace(folded=lines[-1].folded + 1)
            continue
        if row.depth == 1 and row.vdev.vclass != group:
            group = row.vdev.vclass
            if title := CLASS_TITLES.get(group):
                lines.append(TreeLine(f"class:{group}", 0, title=title))
        hiding = row.key in folded
        lines.append(TreeLine(row.key, row.depth, row))
    return tuple(lines)


def _filtered(rows: Sequence[VdevRow], wanted: str) -> list[VdevRow]:
    """Return the matching rows and their ancestors, which keep each match's place in the tree."""
    needle = wanted.casefold()
    kept: set[int] = set()
    path: list[int] = []
    for index, row in enumerate(rows):
        path[row.depth :] = [index]
        if matches(row, needle):
            kept.update(path)
    return [rows[index] for index in sorted(kept)]


def matches(row: VdevRow, needle: str) -> bool:
    """Return whether a case-folded text occurs in a row's name, path, state, note or disk place."""
    vdev, disk = row.vdev, row.vdev.disk or LeafDisk()
    words = (vdev.name, vdev.path or "", vdev.state, vdev.note, vdev.kind, row.slow_sibling or "")
    places = (disk.bay, disk.slot, disk.serial, disk.wwn, disk.port, disk.model)
    return any(needle in word.casefold() for word in (*words, *places))


def successor(before: Sequence[VdevRow], key: str, now: Sequence[VdevRow]) -> str | None:
    """Return the key of the device that took the place of a vanished row; None if none did.

    It is the newest one left of the replacing or spare vdev that the row was, or was part of. Names
    are compared: without GUIDs a key is the way through the tree.
    """
    kept = {row.vdev.name: row.key for row in now if row.vdev.vclass != "spare"}
    lost = next((row.vdev.name for row in before if row.key == key), None)
    groups = [
        row.vdev
        for row in before
        if is_group(row.vdev) and any(vdev.name == lost for vdev in row.vdev.walk())
    ]
    for group in reversed(groups):  # the innermost first
        for leaf in reversed([*group.leaves()]):
            if leaf.name in kept:
                return kept[leaf.name]
    return None


HOLD = 30.0
"""Seconds for which a device stays tinted after it was last found to limit the scan."""


@dataclass
class DeviceMemory:
    """State of the list for one pool: columns it needed, and the device that limits its scan."""

    has: Needs = NO_NEEDS
    culprit: str | None = None
    """Key of the row that limits the scan, or did less than HOLD seconds ago."""
    tree: TreeFacts = field(default_factory=TreeFacts)
    """Facts about the vdevs of the newest frame."""
    _last_said: float = 0.0
    """Time (epoch seconds) when the culprit was last found to limit the scan."""

    def take(self, frame: Frame, look: DisplayFormat) -> None:
        """Update from a frame."""
        self.tree = tree_facts(frame)
        before = self.has  # columns appear once, and stay
        self.has = Needs(
            before.errors or self.tree.errors,
            before.notes
            or bool(frame.troubles)
            or any(is_noted(row, frame, look) for row in frame.rows),
            max(before.bay, self.tree.widest_bay),
        )
        if frame.limit is None:
            self.culprit = None
            return
        disk = frame.limit.disk
        leaves = (row.key for row in frame.rows if disk and row.vdev.name == disk)
        named = next(leaves, None)
        # The tint moves to another device only after HOLD seconds: it would flicker.
        held = self.culprit is not None and 0 <= frame.t - self._last_said < HOLD
        if named is not None and (named == self.culprit or not held):
            self.culprit, self._last_said = named, frame.t
        elif not held:
            self.culprit = None


_TALL, _GRAPH = 20, 3
"""Lines of the list from which graphs in details are higher, and their height then."""
_LEAST = 7
"""Cells of a name beside its bay that suffice to tell disks apart."""
_NOTHING = TreeLine("", 0, title="nothing matches")
_UNSEEN = TreeLine("", 0, title="no devices seen yet")
AWAITED = 30
"""Samples within which a replacement must begin to fill a disk, for the cursor to go there."""


class DeviceView(Pane, CursorView):
    """The list: rows of one frame in the operator's arrangement, some with open details."""

    pane_id = "devices"
    place = "list"
    goes_sideways = True
    title_height = 1  # the headings are always shown

    def __init__(self, sort: str = "tree", columns: Sequence[str] = COLUMNS) -> None:
        """``columns`` are the groups of columns that the configuration allows."""
        super().__init__()
        self.arrangement = Arrangement(sort)
        self._wanted = frozenset(columns)
        self.expanded: set[str] = set()
        self.until: float | None = None
        """Time (epoch seconds) at which the graphs in details end; None for now."""
        self._frame: Frame | None = None
        self._before: Sequence[VdevRow] = ()
        """Rows that the lines were made of."""
        self._opening = True
        """Whether at most one frame has been shown so far."""
        self._look = DisplayFormat()
        self._width, self._height = 80, 0
        self._panel: Panel | None = None
        self._memories: dict[str, DeviceMemory] = {}
        """Memories by pool."""
        self._memory = DeviceMemory()
        self._items: tuple[TreeLine, ...] = ()
        self._filled = frozenset[str]()
        """Keys of listed disks that are being filled, or will be once the metadata is scanned."""
        self._details: dict[str, tuple[Line, ...]] = {}
        self._rows: dict[int, Line] = {}
        """Lines of rows of this frame, as they are asked for twice: to compare and to draw them."""
        self.facts: dict[str, Pairs] = {}
        """Facts from the feed on devices, by key, for their details."""
        self.awaits_filled = 0
        """Number of frames for which the cursor still goes to a disk that begins to be filled."""

    def wish(self, scene: Scene) -> Wish:
        """Wish for a line per vdev, the title, and open details."""
        # The whole tree, with the titles of classes, and the title of the list.
        classes = {row.vdev.vclass for row in scene.frame.rows if row.depth == 1}
        steady = len(scene.frame.rows) + len(classes & CLASS_TITLES.keys()) + 1
        return Wish(self.pane_id, self.place, max(steady, self.line_count() + 1), steady=steady)

    def paint(self, scene: Scene) -> None:
        """Draw the frame of the scene, with the cursor on the same device."""
        frame, look = scene.frame, scene.look
        is_next = self._frame is not frame
        self._opening = self._opening and (self._frame is None or not is_next)
        self._frame, self._look = frame, look
        self._width, self._height = scene.width, scene.lines
        memory = self._memories.setdefault(frame.guid or frame.pool, DeviceMemory())
        was_shown, before = memory is self._memory and bool(self._items), self._filled
        if memory is not self._memory:
            self._memory, self.until = memory, None
        self._memory.take(frame, look)
        self.rearrange()
        if was_shown and (new := self._filled - before):
            self._reveal_filled(new)
        self.awaits_filled = max(0, self.awaits_filled - is_next)

    def rearrange(self, **change: object) -> None:
        """Rebuild the lines after a change of the arrangement, frame or details."""
        self.arrangement = replace(self.arrangement, **change)  # type: ignore[arg-type]
        if self._frame is None:
            return
        at, frame = self._at_cursor, self._frame
        before, self._before = self._before, frame.rows
        found = items(frame.rows, self.arrangement)
        self._items = found or (_NOTHING if frame.rows else _UNSEEN,)
        if filled := self._memory.tree.filled:
            filled = filled.intersection([item.key for item in found])
        self._filled = filled
        self._details = {}
        if self.expanded:
            self._insert_details(frame)
        if at is not None:  # keep the cursor on the same device if it is still there
            own = [(i, item.detail) for i, item in enumerate(self._items) if item.key == at.key]
            if not own:
                heir = successor(before, at.key, frame.rows)
                own = [(i, None) for i, item in enumerate(self._items) if item.key == heir]
            same = (i for i, detail in own if detail == at.detail)
            self.cursor = next(same, own[0][0] if own else self.cursor)
        self.cursor = max(0, min(self.cursor, len(self._items) - 1))
        self._panel = self._make_panel(frame)
        self._rows.clear()
        self.update_lines()
        if self._opening:
            self._open_on_failed()

    def on_resize(self) -> None:
        """Show a failed device on the first frame, now that the height is known."""
        if self._opening:
            self._open_on_failed()

    def _open_on_failed(self) -> None:
        """Move the cursor to the first failed device if it is out of sight.

        Only for the first frame: later on, nothing moves by itself.
        """
        room = self.size.height - self.title_height
        if self._frame is None or room < 1:
            return
        leaves = ((i, item.row.vdev) for i, item in enumerate(self._items) if item.row is not None)
        failed = (i for i, vdev in leaves if not vdev.children and vdev.state in BROKEN)
        if (index := next(failed, 0)) >= room and self.cursor == 0:
            self.cursor = index
            self.reveal()

    def await_filled(self) -> None:
        """Have the cursor go to the disk that a replacement begins to fill within some samples.

        A deferred resilver may begin hours later, when the operator looks at something else.
        """
        self.awaits_filled = AWAITED

    def _reveal_filled(self, new: Collection[str]) -> None:
        """Go to a disk that begins to be filled if the operator waits for it, or to its group.

        On the new disk itself, the next action would be about that one, not about the failed disk.
        Otherwise only scroll to it, if it appeared in the group of the row at the cursor.
        """
        rows = (i for i, item in enumerate(self._items) if item.key in new)
        at, filled = self._at_cursor, next(rows, None)
        if filled is None or at is None:
            return
        if self.awaits_filled:
            self.awaits_filled = 0
            parent = self._parent_of(filled)
            above = None if parent is None else self._items[parent].row
            grouped = above is not None and is_group(above.vdev)
            self.move((parent if parent is not None and grouped else filled) - self.cursor)
            self.reveal(filled)
        elif filled > self.cursor:
            between = self._items[self.cursor : filled + 1]
            if all(item.depth >= at.depth for item in between):  # in one group
                self.reveal(filled)

    @property
    def current(self) -> TreeLine | None:
        """Line at the cursor; None while the list is hidden."""
        return self._at_cursor if self.display else None

    @property
    def _at_cursor(self) -> TreeLine | None:
        return self._items[self.cursor] if self.cursor < len(self._items) else None

    def fold(self, change: Callable[[frozenset[str], frozenset[str]], frozenset[str]]) -> None:
        """Change the folded rows: ``change`` gets them and the row at the cursor, by key."""
        item = self.current
        if item is not None and item.row is not None:
            self.rearrange(folded=change(self.arrangement.folded, frozenset({item.key})))

    def toggle_detail(self) -> str | None:
        """Open or close the details of the row at the cursor; return its key if opened."""
        item = self.current
        if item is None or item.row is None:
            return None
        self.expanded ^= {item.key}
        self.until = self.until if self.expanded else None
        self.rearrange()
        self._reveal_detail(item.key)
        return item.key if item.key in self.expanded else None

    def sideways(self, direction: int) -> None:
        """In open details, scroll in time; otherwise fold or unfold the row at the cursor.

        Left on a row with nothing to fold goes to its parent.
        """
        if self._scroll_time(direction):
            return
        item = self.current
        if direction > 0:
            self.fold(lambda folded, row: folded - row)
        elif item is None or item.row is None or not item.row.vdev.children or item.folded:
            self.to_parent()
        else:
            self.fold(lambda folded, row: folded | row)

    def to_now(self) -> bool:
        """Let the graphs in details end now; return whether they did not."""
        was_earlier = self.until is not None
        if was_earlier:
            self.until = None
            self.rearrange()
        return was_earlier

    def _scroll_time(self, direction: int) -> bool:
        """Scroll open details in time, back (-1) or on; return whether the cursor is in any."""
        item, frame, look = self.current, self._frame, self._look
        if item is None or item.row is None or item.key not in self.expanded or frame is None:
            return False
        rows = self._graph_rows
        room = graph_room(detail_room(item.row, self._width), rows, look)
        most = graph_values(room, rows, look.glyphs)
        self.until = scrolled(frame, most, self.until, direction)
        self.rearrange()
        return True

    def learn(self, key: str, facts: Pairs) -> None:
        """Store facts from the feed, and show them in the details of a device."""
        self.facts[key] = facts
        self.rearrange()
        if (item := self._at_cursor) is not None and item.key == key:
            self._reveal_detail(key)

    def _reveal_detail(self, key: str) -> None:
        """Scroll so that as much of the details is visible as fits."""
        own = (index for index, item in enumerate(self._items) if item.key == key)
        self.reveal(max(own, default=0))

    def line_count(self) -> int:
        """Return the number of lines: rows, class titles and details."""
        return len(self._items)

    def line_at(self, index: int) -> Line:
        """Return the line at an index; rows are made on demand."""
        item = self._items[index]
        if item.detail is not None:
            return self._details[item.key][item.detail]
        if self._panel is None:
            return ()
        if index not in self._rows:
            self._rows[index] = row_line(item, self._panel)
        return self._rows[index]

    def ground(self, index: int) -> str:
        """Return the background: the cursor's, else a tint for the device that limits the scan."""
        item = self._items[index]
        tinted = item.key == self._memory.culprit and item.detail is None
        return super().ground(index) or ("tint" if tinted else "")

    def title_line(self) -> Line:
        """Return the column headings with order, filter and position."""
        if self._panel is None:
            return (Span(" DEVICES", "title"),)
        line = heading(self._panel, self.arrangement.sort)
        marked = sort_key(self._panel.columns, self.arrangement.sort) is not None
        if not (mark := self._position(self.size.height, marked=marked)):
            return line
        # After the first heading, if the name column has room for it.
        line = merged(line)
        text = line[0].text
        head = text.rstrip().split("  ")[0]
        room = len(text) - len(head) - len(text[len(head) :].lstrip())
        if len(mark) + 2 > room:
            return line
        shown = f"{head} {mark}"
        return (Span(shown + text[len(shown) :], line[0].role), *line[1:])

    def go_to(self, key: str) -> None:
        """Put the cursor on the row with this key, if it is in the list."""
        index = next((i for i, item in enumerate(self._items) if item.key == key), None)
        if index is not None:
            self.move(index - self.cursor)

    def to_trouble(self) -> bool:
        """Go to the next device that limits the scan, is slow, has failed or has errors, if any.

        The devices that a suspended pool waits for come first: the header names them. Filter and
        folds are dropped if they hide it. Return False if there is none.
        """
        frame = self._frame
        leaves = [row for row in frame.rows if not row.vdev.children] if frame else []
        told = {trouble.key for trouble in frame.troubles} if frame else set()
        limit = frame.limit.disk if frame and frame.limit else ""
        wanted = [row.key for row in frame.missing_devices] if frame else []
        wanted += [row.key for row in leaves if limit and row.vdev.name == limit]
        wanted += [row.key for row in leaves if row.slow_sibling]
        wanted += [row.key for row in leaves if row.gone or row.vdev.state in BROKEN]
        wanted += [row.key for row in leaves if row.key in told or row.vdev.errors.total]
        keys = list(dict.fromkeys(wanted))
        if not keys:
            return False
        at = self._at_cursor.key if self._at_cursor is not None else ""
        key = keys[(keys.index(at) + 1) % len(keys)] if at in keys else keys[0]
        if all(item.key != key for item in self._items):
            self.rearrange(folded=frozenset(), filter="")
        self.go_to(key)
        return True

    def to_parent(self) -> None:
        """Move the cursor to the parent of its row."""
        parent = self._parent_of(self.cursor) if self.current is not None else None
        if parent is not None:
            self.move(parent - self.cursor)

    def _parent_of(self, row: int) -> int | None:
        """Return the index of a row's parent; None for the topmost row."""
        for index in range(row - 1, -1, -1):
            above = self._items[index]
            is_row = above.detail is None and above.row is not None
            if is_row and above.depth < self._items[row].depth:
                return index
        return None

    def _make_panel(self, frame: Frame) -> Panel:
        """Return what the rows share: columns that fit, names, and the scale of sparklines."""
        tree, number = self._memory.tree, self._look.number
        mark = 5 if self.arrangement.folded else 0  # a space, the sign, three digits
        longest = max(tree.longest + mark, len("NAME  ") + len(self._position(self._height)))
        has = self._memory.has._replace(wanted=self._wanted)
        width = max(1, self._width - 2)
        columns = arrange(width, longest, number, has)
        # Bays without a column stand before the names.
        named = "bay" in self._wanted and all(column.key != "bay" for column in columns)
        if named and has.bay:
            columns = arrange(width, longest + has.bay + 1, number, has)
        spark = max((c.width for c in columns if c.key.endswith("_spark")), default=0)
        top = common_scale(frame, spark) if spark else 1.0
        # Leaf names in the width of their column, distinct, after their bays if there is room for
        # enough of the names beside them.
        room, bay = columns[0].width - tree.deepest, tree.widest_bay + 1
        if not named or bay == 1 or room - bay < min(_LEAST, tree.longest_leaf):
            named, bay = False, 0
        whole = {name: self._look.text(name) for name in tree.names}
        short = short_names(tuple(whole.values()), room - bay, self._look.glyphs.ellipsis)
        told = tree.bays.items() if named else ()
        bays = {name: f"{self._look.text(where)} " for name, where in told if where}
        names = {name: bays.get(name, "") + short[text] for name, text in whole.items()}
        troubles = {trouble.key: trouble for trouble in frame.troubles}
        waited_for = frozenset(row.key for row in frame.missing_devices)
        return Panel(frame, self._look, columns, names, top, troubles, waited_for)

    @property
    def _graph_rows(self) -> int:
        return 1 if self._height < _TALL else _GRAPH

    def _insert_details(self, frame: Frame) -> None:
        """Make the details of expanded rows, and insert their lines below these."""
        look, width, rows = self._look, self._width, self._graph_rows
        for row in frame.rows:
            if row.key in self.expanded:
                facts = self.facts.get(row.key, ())
                lines = detail_lines(row, frame, facts, look, width, rows, self.until)
                self._details[row.key] = lines
        listed: list[TreeLine] = []
        for item in self._items:
            listed.append(item)
            count = len(self._details.get(item.key, ()))
            listed += (TreeLine(item.key, item.depth, item.row, detail=i) for i in range(count))
        self._items = tuple(listed)

    def _position(self, height: int, *, marked: bool = True) -> str:
        """Return order, filter, and in a longer list than ``height`` lines show, the position.

        No order if it is ``marked`` on a heading.
        """
        parts = []
        if self.arrangement.sort != "tree" and not marked:
            parts.append(f"by {self.arrangement.sort}")
        if self.arrangement.filter:
            parts.append(f"/{self._look.text(self.arrangement.filter)}")
        if len(self._items) > height - 1:
            total = str(len(self._items))
            parts.append(f"{self.cursor + 1:>{len(total)}}/{total}")
        return " ".join(parts)
