"""Screen for choosing directories: a tree whose sizes fill in while it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from textual import getters
from textual.app import ComposeResult
from textual.timer import Timer

from zconsole.errors import ZconsoleError
from zconsole.pool.what_if import outlook
from zconsole.rebalance.backend import DirectoryListing, Explorer, Measured
from zconsole.timeline.frame import Frame
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.dialogs.screens import Dialog, PickView
from zconsole.ui.display_format import DisplayFormat, count
from zconsole.ui.panes.help import titled_keys
from zconsole.ui.themed_app import begin
from zconsole.ui.widgets.draw import Line, Lines, Span, fit, joined, width_of
from zconsole.ui.widgets.graph import bar
from zconsole.ui.widgets.lines_view import FooterView, LinesView
from zconsole.units import percent

PATIENCE = 10.0
"""Seconds after which a directory that was asked for is reported as not answering."""


UNKNOWN = Measured("", None, 0, done=False)
"""Size of a directory that was not measured yet."""


@dataclass(frozen=True, slots=True)
class FolderRow:
    """A line of the tree."""

    path: str
    name: str
    depth: int
    mark: str
    """``x`` if marked, ``-`` inside a marked directory, ``+`` if it contains a marked one, else
    blank."""
    open: bool
    is_leaf: bool = False
    """Whether it is known to contain no directories."""
    dataset: str = ""
    """Dataset of a mountpoint whose path does not tell its name."""
    size: Measured = UNKNOWN
    problem: str = ""


@dataclass(slots=True)
class Folders:
    """Tree of the directories under a pool's mountpoints. Times are seconds of one clock."""

    roots: Mapping[str, str]
    """Datasets by mountpoint."""
    listed: dict[str, DirectoryListing] = field(default_factory=dict)
    sizes: dict[str, Measured] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    marked: dict[str, None] = field(default_factory=dict)
    """Chosen directories, in the order in which they were marked."""
    asked: dict[str, float] = field(default_factory=dict)
    at: str | None = None
    """Directory at the cursor, to which the cursor returns when the tree is shown again."""

    def take(self, answer: DirectoryListing | Measured) -> None:
        """Store an answer of the explorer."""
        if isinstance(answer, DirectoryListing):
            self.listed[answer.path] = answer
        else:
            self.sizes[answer.path] = answer

    def open(self, path: str, now: float) -> bool:
        """Unfold a directory; return whether it still has to be listed."""
        self.opened.add(path)
        if path in self.asked:
            return False
        self.asked[path] = now
        return True

    def unfolds(self, path: str) -> bool:
        """Return whether ``open`` may show more."""
        listing = self.listed.get(path)
        return path not in self.opened and (listing is None or bool(listing.names))

    def close(self, path: str) -> str:
        """Fold a directory, or its nearest unfolded parent if it is folded; return which."""
        if path not in self.opened:
            above = map(str, PurePosixPath(path).parents)
            path = next((p for p in above if p in self.opened), path)
        self.opened.discard(path)
        return path

    def mark(self, path: str) -> str:
        """Mark or unmark a directory; return why it can't be marked, else an empty text."""
        if path in self.marked:
            del self.marked[path]
            return ""
        home = self._root(path)
        for other in [p for p in self.marked if inside(path, p) or inside(p, path)]:
            if self._root(other) != home:
                upper, lower = sorted((path, other), key=len)
                return f"{lower} is a dataset inside {upper}: run a job for each"
            if inside(path, other):
                return f"included via {other}"
            del self.marked[other]
        self.marked[path] = None
        return ""

    def rows(self, now: float) -> tuple[FolderRow, ...]:
        """Return the visible lines in order."""
        found: list[FolderRow] = []
        for point, source in self.roots.items():
            dataset = "" if source == point.strip("/") else source
            found += self._tree(point, point, 0, now, dataset)
        return tuple(found)

    def marked_bytes(self) -> tuple[int, bool]:
        """Return the known size of all marked directories in bytes, and whether it is complete."""
        found = [self.sizes.get(path, UNKNOWN) for path in self.marked]
        return sum(each.bytes or 0 for each in found), all(each.done for each in found)

    def _tree(
        self, path: str, name: str, depth: int, now: float, dataset: str = ""
    ) -> Iterator[FolderRow]:
        """Yield the line of a directory, and those unfolded below it."""
        is_open, mark, size = path in self.opened, self._mark(path), self.sizes.get(path, UNKNOWN)
        problem, listing = self._problem(path, now) if is_open else "", self.listed.get(path)
        is_leaf = listing is not None and not listing.names and not listing.problem
        yield FolderRow(path, name, depth, mark, is_open, is_leaf, dataset, size, problem)
        if is_open and listing is not None:
            for child in listing.names:
                yield from self._tree(str(PurePosixPath(path, child)), child, depth + 1, now)

    def _problem(self, path: str, now: float) -> str:
        listing = self.listed.get(path)
        if listing is None:
            late = now - self.asked.get(path, now) >= PATIENCE
            return "does not answer" if late else "looking"
        return listing.problem or ("" if listing.names else "no directories inside")

    def included(self, path: str) -> str:
        """Return the marked directory of the same dataset that contains a path; empty if none."""
        return next((p for p in self._near(path) if inside(path, p)), "")

    def _mark(self, path: str) -> str:
        if path in self.marked:
            return "x"
        if self.included(path):
            return "-"
        return "+" if any(inside(p, path) for p in self._near(path)) else " "

    def _near(self, path: str) -> list[str]:
        """Return the marked directories under the mountpoint of a path."""
        home = self._root(path)
        return [p for p in self.marked if self._root(p) == home]

    def _root(self, path: str) -> str:
        """Return the mountpoint of a path: the longest one that contains it."""
        homes = [point for point in self.roots if path == point or inside(path, point)]
        return max(homes, key=len, default="")


def inside(path: str, other: str) -> bool:
    """Return whether a path lies below another directory."""
    return path != other and path.startswith(other.rstrip("/") + "/")


AGED = " old: written before the newest vdev was added; worth moving"
TOPICS = (
    ("[x] [-]", "marked, and included in a marked directory"),
    ("[+]", "not marked, but a directory in it is"),
    ("SHARE", "of the size of the largest directory shown"),
)
"""Explanations for the help."""
KEYS = ("mark", "go-on", "help", "back", "unfold", "fold-up")
"""Titles of the keys in the footer, the most important first."""
_GAP = 0.2
"""Seconds between two redraws while sizes arrive."""
_BAR = 10
_OLD = 5
_BARS_FROM = 70


class FoldersScreen(Dialog[tuple[str, ...] | None], groups=("Directories",)):
    """Screen for choosing directories; returns the chosen ones, or None if left."""

    topics = TOPICS
    view = getters.query_one(PickView)

    def __init__(
        self,
        ui: FlowSession,
        pool: str,
        folders: Folders,
        explorer: Explorer,
    ) -> None:
        super().__init__()
        self._clock = ui.app.view_state.options.clock
        self._pool = pool
        self._folders = folders
        self._explorer = explorer
        self._rows: tuple[FolderRow, ...] = ()
        self._timer: Timer | None = None
        self._said = ""
        frame = ui.frame_of(pool)
        self._evening = evening_words(frame, ui.look) if frame else ""

    def compose(self) -> ComposeResult:
        """Yield the heading, the tree and the footer."""
        yield LinesView(id="head")
        yield PickView(0, self._moved)
        yield FooterView(id="keys")

    def on_mount(self) -> None:
        """Start to list and measure the mountpoints."""
        for point in self._folders.roots:
            self._explorer.used(point)  # needs no walk of the dataset
        for path in self._folders.opened:
            self._explorer.open(path)
        if len(self._folders.roots) == 1:
            self._unfold(next(iter(self._folders.roots)))
        begin(self, self._listen, group="explore", exit_on_error=False)
        self.set_interval(1.0, self.update)  # to tell which directories do not answer

    def on_unmount(self) -> None:
        """Stop the explorer."""
        self._explorer.close()

    async def _listen(self) -> None:
        try:
            while (answer := await self._explorer.next()) is not None:
                self._folders.take(answer)
                if self._timer is None:
                    self._timer = self.set_timer(_GAP, self.update)
        except ZconsoleError as error:
            self._said = str(error)
            self.update()

    def draw(self) -> None:
        """Draw the tree as known now, with the cursor on the same directory."""
        self._timer = None
        row = self._row
        here = self._folders.at = row.path if row else self._folders.at
        self._rows = self._folders.rows(self._clock())
        paths = [row.path for row in self._rows]
        if here in paths:
            self.view.cursor = paths.index(here)
        width = self.app.size.width
        pool = self.look.text(self._pool)
        title: Line = (Span(" REBALANCE ", "focus"), Span(f" {pool}: choose directories", "title"))
        aged = is_aged(self._rows)
        self.text.show((title, folder_head(self.look, width, aged)))
        self.view.show(folder_lines(self._rows, self.look, width))
        self._show_hint()

    def _hint(self, width: int) -> Lines:
        marked = self._folders.marked
        here = self._row.path if self._row else ""
        words = {"back": "back"} if marked else {"back": "back", "go-on": "choose this"}
        if not marked and here in self._folders.roots:
            name = self.look.middle(here, width // 3)
            words["go-on"] = f"choose all of {name}"
        if here in marked:
            words["mark"] = "unmark"
        useless = {"mark"} if self._folders.included(here) else set()
        if not self._folders.unfolds(here):
            useless.add("unfold")
        offered = (key for key in KEYS if key not in useless)
        parts = [titled_keys(self.look, title, words.get(title, "")) for title in offered]
        if marked:
            size, whole = self._folders.marked_bytes()
            text = f"{len(marked)} marked, {self.look.size(size)}{'' if whole else '+'}"
            parts.insert(0, (Span(text, "key"),))
        if not self._said and (why := self._mark_words(width // 2)):
            parts.insert(0, (Span(why),))
        keys: Line = (Span(" "), *joined(parts, "  ", width - 2)[0])
        if self._said:
            return (*self.look.wrapped(self._said, width, "warning"), keys)
        even = self.look.wrapped(self._evening, width, "dim") if self._evening else ()
        aged: Lines = ((Span(AGED, "dim"),),) if is_aged(self._rows) else ()
        return (*even, *aged, keys)

    def _mark_words(self, room: int) -> str:
        """Explain the mark of the directory at the cursor if a mark elsewhere caused it."""
        row = self._row
        if row is not None and (above := self._folders.included(row.path)):
            head = "included via "
            return f"{head}{self.look.middle(above, room - len(head))}"
        return "partly: marked inside" if row is not None and row.mark == "+" else ""

    def _moved(self, _: int) -> None:
        """Update the footer for the directory at the cursor."""
        self._said = ""
        self._show_hint()

    def _show_hint(self) -> None:
        self.footer.show(self._hint(self.app.size.width))

    @property
    def _row(self) -> FolderRow | None:
        """The line at the cursor; None before there is any."""
        index = self.view.cursor
        return self._rows[index] if index < len(self._rows) else None

    def _unfold(self, path: str) -> None:
        if self._folders.open(path, self._clock()):
            self._explorer.open(path)

    # Keys

    def action_mark(self) -> None:
        """Mark or unmark the directory at the cursor; the cursor stays, so that the mark shows."""
        if row := self._row:
            self._said = self._folders.mark(row.path)
            self.update()

    def action_unfold(self) -> None:
        """Show the directories inside the one at the cursor."""
        if row := self._row:
            self._unfold(row.path)
            self.update()

    def action_fold_up(self) -> None:
        """Fold the directory at the cursor, or the one it is in."""
        if here := self._row:
            closed = self._folders.close(here.path)
            self._rows = self._folders.rows(self._clock())
            self.view.cursor = [row.path for row in self._rows].index(closed)
            self.update()

    def action_go_on(self) -> None:
        """Return the marked directories, or the one at the cursor if none is marked."""
        row = self._row
        if chosen := tuple(self._folders.marked) or ((row.path,) if row else ()):
            self.dismiss(chosen)


def evening_words(frame: Frame, look: DisplayFormat) -> str:
    """Describe how much to mark for an even pool, assuming uniform data; empty if nothing."""
    root = frame.root
    view = outlook(root, root, frame.version, frame.seen.volumes) if root else None
    share = view.before.data_share if view else None
    if view is None or share is None or view.rewrite_bytes == 0:
        return ""
    if view.rewrite_bytes is None:
        left, held = percent(view.spread_after, 1), view.before.volumes
        why = "some lands on the full vdevs again"
        if held is not None and held.keeps_uneven:
            why = f"{held.in_short(look.size)} stay"
        return f"Marking everything leaves a spread of {left}: {why}"
    marked, above = look.size(view.rewrite_bytes * share), look.size(frame.balance.imbalance_bytes)
    # What the vdevs hold may be compressed: then its files are larger.
    return (
        f"For an even pool mark {marked} logical, less helps in part: {above} (raw) moves,"
        " the rest lands where it was"
    )


def folder_head(look: DisplayFormat, width: int, aged: bool = False) -> Line:
    """Return the headings of the columns of ``folder_lines``."""
    share = f"{fit('SHARE', _BAR)} " if width >= _BARS_FROM else ""
    size, files = fit("SIZE", look.number + 1, right=True), fit("FILES", 5, right=True)
    old = f"{fit('OLD', _OLD, right=True)} " if aged else ""
    head = f"     {size} {files} {old}{share}  DIRECTORY"
    kind = " (sizes below a mountpoint: logical)"
    return (Span(head + kind * (len(head + kind) <= width), "dim"),)


def is_aged(rows: Sequence[FolderRow]) -> bool:
    """Return whether any directory's share of data older than the newest vdev is known."""
    return any(row.size.old is not None for row in rows)


def folder_lines(rows: Sequence[FolderRow], look: DisplayFormat, width: int) -> Lines:
    """Return one line per directory: mark, size, files, old part, share of the largest, name."""
    largest = max((row.size.bytes or 0 for row in rows), default=0)
    aged = is_aged(rows)
    return tuple(_folder(row, largest, look, width, aged) for row in rows)


def _folder(row: FolderRow, largest: int, look: DisplayFormat, width: int, aged: bool) -> Line:
    size = row.size
    figure = "" if size.bytes is None else f"{look.size(size.bytes)}{'' if size.done else '+'}"
    files = count(size.files) if size.files else ""
    head: list[Span] = [
        Span(f" [{row.mark}]", "key" if row.mark == "x" else "dim"),
        Span(f" {fit(figure, look.number + 1, right=True)}"),
        Span(f" {fit(files, 5, right=True)} ", "dim"),
    ]
    if aged:
        old = percent(size.old / size.bytes) if size.old is not None and size.bytes else ""
        head.append(Span(f"{fit(old, _OLD, right=True)} "))
    if width >= _BARS_FROM:
        share = (size.bytes or 0) / largest if largest else 0.0
        head += [*bar(share, _BAR, look.glyphs), Span(" ")]
    glyphs = look.glyphs
    fold = " " if row.is_leaf else glyphs.sorted if row.open else glyphs.folded
    tail = "  ".join(filter(None, (look.text(row.dataset), look.text(row.problem))))
    lead = f"{'  ' * row.depth}{fold} "
    room = max(4, width - width_of(head) - len(lead) - (len(tail) + 2 if tail else 0) - 1)
    role = {"x": "key", "-": "bold"}.get(row.mark, "")
    name = look.middle(row.name, room)
    return (*head, Span(lead, "dim"), Span(name, role), Span(f"  {tail}" if tail else "", "dim"))
