"""Screens on top of the main one: text, help, a list to pick from, a line to type."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from textual import events, getters
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ScreenResultType
from textual.widgets import Input

from zconsole.errors import ZconsoleError
from zconsole.pool.model import NOTHING
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.keys import bindings
from zconsole.ui.panes.help import help_lines, keys_line, legend_lines, screen_help_lines
from zconsole.ui.themed_app import ThemedApp, TypedAheadScreen, begin
from zconsole.ui.widgets.draw import Line, Lines, Span, at_most, spread
from zconsole.ui.widgets.lines_view import SCROLL_MARKS, CursorView, FooterView, LinesView

Drawing = Callable[[DisplayFormat, int], Sequence[Line]]
"""Draws lines in a display format, for a width."""
Offers = Sequence[tuple[str, str]]
"""Texts that can be copied, each as (kind, text)."""
About = Callable[[int, DisplayFormat, int], Sequence[Line]]
"""Returns details about the line at an index, in a display format, for a width."""
Fill = Callable[[], Awaitable[int]]
"""Loads missing parts of a list; returns the index to start at. Raises ZconsoleError."""
Behind = Callable[[], Collection[int]]
"""Returns the indexes of lines that are folded into one line, which unfolds them."""
_REST = -1
"""Index that stands for the line that unfolds others."""


class Dialog(TypedAheadScreen[ScreenResultType]):
    """A screen of lines, which are made for its width, above a line of keys."""

    app = getters.app(ThemedApp)
    text = getters.query_one(LinesView)
    """The view of its lines, the first of its views."""
    footer = getters.query_one(FooterView)
    groups: ClassVar[tuple[str, ...]] = ()
    """Its own groups in the table of keys: those it binds, helps with and lists."""
    copies_lines: ClassVar[bool] = False
    """Whether what can be copied is text of several lines, printable already."""
    lives: ClassVar[bool] = False
    """Whether it is redrawn with each round of frames."""
    topics: Sequence[tuple[str, str]] = ()
    """Topics that its help explains before the keys: a word on the screen, and its explanation."""

    def __init_subclass__(cls, groups: tuple[str, ...] | None = None, **options: Any) -> None:
        """Name the groups of a screen, and bind their keys; by default those of its base."""
        if groups is not None:
            cls.groups, cls.BINDINGS = groups, bindings(*groups)
        super().__init_subclass__(**options)

    @property
    def look(self) -> DisplayFormat:
        """The current display format."""
        return self.app.view_state.look

    @property
    def help_groups(self) -> tuple[str, ...]:
        """The groups of keys that its help covers now."""
        return self.groups

    def compose(self) -> ComposeResult:
        """Yield the view and the keys."""
        yield LinesView(id="text", focusable=True)
        yield FooterView(id="keys")

    def copies(self) -> Offers:
        """Return the texts that can be copied here."""
        return ()

    def step_back(self) -> bool:
        """Undo one change of the view; return False if there was none, so that Esc leaves."""
        return False

    def on_mount(self) -> None:
        """Draw the screen, and handle the keys that were typed before it was ready."""
        self.composed = True
        self.update()
        self.app.screen_ready(self)

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.update()

    def update(self) -> None:
        """Redraw the lines if the screen is ready.

        Rounds, timers and workers may call this before the screen is composed or after it was left.
        """
        if self.composed and self in self.app.screen_stack:
            self.draw()

    def draw(self) -> None:
        """Redraw the lines; called by ``update``."""
        raise NotImplementedError


class TextScreen(Dialog[ScreenResultType]):
    """Drawing under a title, to scroll through."""

    labels: Mapping[str, str] = NOTHING
    """Labels of keys that differ from the usual ones now, by the names in the configuration."""

    def __init__(self, title: str, lines: Drawing) -> None:
        super().__init__()
        self._title_text = title
        self._make = lines

    def draw(self) -> None:
        """Redraw the lines."""
        width = self.app.size.width
        self.text.show(self._make(self.look, width), self.title_line(width))
        self.show_keys()

    def title_line(self, _: int) -> Line:
        """Return the line that stays at the top, for a width."""
        return (Span(f" {self._title_text}", "title"),)

    def aged_title(self, width: int) -> Line:
        """Return the title, with the age of the data at its end if they are late."""
        title, late = self.title_line(width), self.app.late
        room = width - SCROLL_MARKS  # which come after it
        return spread(title, late, room, self.look.glyphs.ellipsis) if late else title

    def show_keys(self) -> None:
        """Draw the keys that work here."""
        typing = isinstance(self.focused, Input)
        width = self.app.size.width
        line = keys_line(self.groups, self.look, width, typing=typing, labels=self.labels)
        self.footer.show((line,))


class FilteredScreen(TextScreen[ScreenResultType]):
    """A text screen of which only what matches a typed text is shown."""

    wanted = ""
    """The text to match; empty shows all."""
    hint: ClassVar[str] = ""
    """Shown in the prompt while nothing is typed."""

    def action_filter(self) -> None:
        """Open a prompt for a text; only what has it is shown."""
        if not self.query(Input):
            prompt = Prompt(self.wanted, id="prompt", placeholder=self.hint)
            self.mount(prompt)
            self.set_focus(prompt)  # the next key may be queued already
            self.show_keys()

    def on_input_changed(self, message: Input.Changed) -> None:
        """Filter while the text is typed."""
        self.wanted = message.value.strip()
        self.update()

    def on_input_submitted(self) -> None:
        """Keep the filter and close the prompt."""
        self.query(Input).remove()
        self.set_focus(self.text)
        self.update()

    def step_back(self) -> bool:
        """Clear the filter; return False if there was none."""
        had = bool(self.wanted or self.query(Input))
        self.wanted = ""
        if had:
            self.on_input_submitted()
        return had


_HELP_PARTS = ("HELP", "LEGEND")


class HelpScreen(TextScreen[None], groups=("Help",)):
    """The help in two parts, of which one is shown."""

    def __init__(self, about: Dialog[Any] | None, interval: float, *, typing: bool = False) -> None:
        """``about`` is the screen to explain; None for the main one. ``typing``: in an input."""
        super().__init__(_HELP_PARTS[0], self._lines)
        # Kept as they are now: a dialog's keys may change with its question.
        self._groups = about.help_groups if about else ("Answer",) if typing else None
        self._topics = about.topics if about else ()
        self._interval = interval
        self._typing = typing

    def action_turn(self) -> None:
        """Show the other part, from its top."""
        self._title_text = _HELP_PARTS[1 - _HELP_PARTS.index(self._title_text)]
        self.text.edge(-1)
        self.update()

    def _lines(self, look: DisplayFormat, width: int) -> Lines:
        if self._title_text == _HELP_PARTS[1]:
            return legend_lines(look, width, self._interval)
        if self._groups is None:
            state = self.app.view_state
            return help_lines(look, width, state.denied, played=state.playback is not None)
        return screen_help_lines(self._groups, look, width, self._topics, typing=self._typing)


class PickView(CursorView):
    """Drawing with a cursor, marked by a pointer; reports where the cursor goes."""

    def __init__(self, start: int, moved: Callable[[int], None] | None = None) -> None:
        super().__init__(id="pick", focusable=True)
        self.cursor = start
        self._moved = moved

    def line_at(self, index: int) -> Line:
        """Return the line at an index; at the cursor, with the pointer in its first, blank cell."""
        line = super().line_at(index)
        if index != self.cursor or not line or not line[0].text.startswith(" "):
            return line
        pointer = self.look.glyphs.pointer
        return (line[0]._replace(text=pointer + line[0].text[1:]), *line[1:])

    def move(self, lines: int) -> None:
        """Move the cursor and call the preview."""
        before = self.cursor
        super().move(lines)
        if self.cursor != before and self._moved is not None:
            self._moved(self.cursor)


@dataclass(slots=True)
class PickList:
    """A list to choose from; shown again, its cursor starts on the line chosen last."""

    title: str
    lines: Drawing
    start: int = 0
    about: About | None = None
    """Details on the line at the cursor; without it the lines themselves say everything."""
    fill: Fill | None = None
    """Completes the lines while they are shown, and returns the new start. Raises ZconsoleError.

    Nothing is picked before it is done, and without lines no key acts until then."""
    behind: Behind = tuple
    """Indexes of lines hidden behind one, such as unavailable ones, which ``rest`` describes."""
    rest: str = ""
    offers: Callable[[int], Offers] = lambda _: ()
    """Texts that can be copied from the line at an index."""
    topics: Sequence[tuple[str, str]] = ()
    """Help on each line, as titles and texts."""
    barred: Mapping[int, str] = field(default_factory=dict)
    """Drawing that can't be picked now, each with the reason."""
    moved: Callable[[int], None] = lambda _: None
    """Called with the index at the cursor when that has moved."""
    side: bool = False
    """Whether it is beside the main screen, which stays in sight."""
    picked: int | None = None


class PickScreen(TextScreen[int | None], groups=("Menu",)):
    """A list over the main screen; returns the index picked, or None after Esc."""

    lives = True
    about_share: ClassVar[int] = 3
    """Details about the line at the cursor may take one in so many lines of the screen."""
    view = getters.query_one(PickView)
    about = getters.query_one("#about", LinesView)

    def __init__(self, choice: PickList) -> None:
        super().__init__(choice.title, choice.lines)
        self.failed: ZconsoleError | None = None
        """Why the list could not be completed; the screen was left then."""
        self.topics = choice.topics
        self._choice, self._fill = choice, choice.fill
        self._touched = choice.picked is not None
        """Whether the operator has placed the cursor."""
        self._picked = self._opened = False
        """Whether Enter was pressed during loading, and whether hidden lines are shown."""
        self._listed: Sequence[int] = ()
        """Index of each line, in the order shown."""
        self.set_class(choice.side, "side")

    def compose(self) -> ComposeResult:
        """Yield the list, and below it the details about the line at the cursor."""
        start, picked = self._choice.start, self._choice.picked
        self._list(self.app.size.width)
        with Vertical(id="picked"):
            yield PickView(self._line_of(start if picked is None else picked), self._moved)
            yield LinesView(id="about")
        yield FooterView(id="keys")

    def title_line(self, width: int) -> Line:
        """Return the title, with a note while parts are loading."""
        title = super().title_line(width)
        return title if self._fill is None else (*title, Span("  reading the pool", "dim"))

    def copies(self) -> Offers:
        """Return the texts that can be copied from the line at the cursor."""
        return () if self._index == _REST else self._choice.offers(self._index)

    def draw(self) -> None:
        """Redraw the lines."""
        width = self.view.size.width or self.app.size.width
        self.view.show(self._list(width), self.aged_title(width))
        # As high as its lines and one blank line, so that the details stand close below.
        self.view.styles.max_height = self.view.line_count() + 2
        heights = [len(self._said(index)) for index in range(self.view.line_count())]
        # As high as the longest details, so that nothing jumps while the cursor moves.
        self.about.styles.height = max(heights, default=0)
        self._show_about()
        self.show_keys()

    def _list(self, width: int) -> Sequence[Line]:
        """Return the lines as shown, with folded lines, or the line for them, at the end."""
        lines, behind = self._make(self.look, width), sorted(self._choice.behind())
        shown = [index for index in range(len(lines)) if index not in behind]
        folded = len(behind) > 1 and not self._opened
        self._listed = [*shown, *([_REST] if folded else behind)]
        more: Line = (Span(f"  {len(behind)} more {self._choice.rest}", "dim"),)
        return [more if index == _REST else lines[index] for index in self._listed]

    def _line_of(self, index: int) -> int:
        """Return the line that shows an index now, unfolding the folded lines if necessary."""
        if index in self._choice.behind():
            self._opened = True
            self._list(self.app.size.width)
        return self._listed.index(index) if index in self._listed else max(index, 0)

    @property
    def _index(self) -> int:
        """The index of the line at the cursor."""
        line = self.view.cursor
        return self._listed[line] if line < len(self._listed) else line

    def on_mount(self) -> None:
        """Start to load missing parts; textual then also calls the handler of Dialog."""
        if self._fill is not None:
            # Without any line, keys have nothing to act on yet and are held back.
            self.holds = not self._make(self.look, self.app.size.width)
            begin(self, partial(self._fill_in, self._fill), group="fill")

    async def _fill_in(self, fill: Fill) -> None:
        try:
            start = await fill()
        except ZconsoleError as error:
            self.failed = error
            self.dismiss(None)
            return
        # Stay where the operator moved the cursor before or during loading.
        at = self._index if self._touched else start
        self._fill, self.holds = None, False
        self._list(self.app.size.width)
        self.view.cursor = self._line_of(at)
        self.update()
        self.view.reveal()
        if self._picked:
            self.action_open()
        self.app.go_on()

    def on_resize(self) -> None:
        """Draw for the new width, once the list has it."""
        self.call_after_refresh(self.update)

    def _moved(self, line: int) -> None:
        self._touched = True
        self._show_about()
        self._choice.moved(self._listed[line])

    def _show_about(self) -> None:
        self.about.show(self._said(self.view.cursor))

    def _said(self, line: int) -> Sequence[Line]:
        about = self._choice.about
        if about is None or line >= len(self._listed):
            return ()
        index = self._listed[line]
        if index == _REST:
            return ((Span(" Enter lists them, each with the reason"),),)
        width, height = self.view.size.width or self.app.size.width, self.app.size.height
        free = height - self.view.line_count() - 3  # its title, the gap and the keys
        most = max(1, free, height // self.about_share)
        return at_most(most, about(index, self.look, width), self.look.glyphs.ellipsis)

    def action_open(self) -> None:
        """Return the index at the cursor once all is loaded, or say why it can't be picked."""
        if self._fill is not None:
            self._picked = self.holds = True
            return
        index = self._index
        if index == _REST:
            self._opened = True
            self.update()
        elif why := self._choice.barred.get(index):
            self.app.answer(f"not now: {why}", 5)
        else:
            self.dismiss(index)


class Prompt(Input):
    """An input with a steady cursor, always visible and without bytes sent for blinking.

    Its left edge shows the focus, even without color. A former text is there to be corrected: it is
    not selected, as the first key would replace all of it.
    """

    app = getters.app(ThemedApp)

    def __init__(self, value: str = "", *, id: str, placeholder: str = "") -> None:  # noqa: A002
        super().__init__(value, placeholder=placeholder, id=id, select_on_focus=False)
        self.cursor_blink = False

    async def _on_key(self, event: events.Key) -> None:
        """Show the help for a ``?`` in an empty input, as no answer begins with it."""
        helps = self.app.view_state.look.keys.titled("help").keys
        if event.key == "question_mark" and event.key in helps and not self.value:
            event.stop()
            event.prevent_default()
            await self.run_action("app.help")


@dataclass(slots=True)
class TextQuestion:
    """A question answered by typing; asked again, it starts with the last answer, to correct it."""

    title: str
    lines: Drawing
    example: str = ""
    """Shown while nothing is typed."""
    typed: str = ""


class AskScreen(TextScreen[str | None], groups=("Answer",)):
    """A question and a line for the answer; returns None when left."""

    AUTO_FOCUS = "#answer"

    def __init__(self, question: TextQuestion) -> None:
        super().__init__(question.title, question.lines)
        self._question = question

    def compose(self) -> ComposeResult:
        """Yield the question and the answer."""
        yield LinesView(id="question")
        yield Prompt(self._question.typed, placeholder=self._question.example, id="answer")
        yield FooterView(id="keys")

    def draw(self) -> None:
        """Redraw the question."""
        super().draw()
        self.text.styles.height = self.text.line_count() + 1

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Return the answer; None, with a message, if nothing was typed."""
        answer = message.value.strip()
        if not answer:
            self.app.answer("Nothing typed: nothing changed", 4)
        self.dismiss(answer or None)
