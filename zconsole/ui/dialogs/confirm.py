"""Screens that end in a row of buttons, and the one between a plan and its run.

That shows the full description with Cancel focused, then streams the output.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from textual import events, getters, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.css.query import QueryType
from textual.geometry import Size
from textual.screen import ScreenResultType
from textual.widget import Widget
from textual.widgets import Button, Input

from zconsole.errors import ZconsoleError
from zconsole.ui.actions.plan_lines import said_lines
from zconsole.ui.dialogs.screens import Dialog, Drawing, Offers, Prompt
from zconsole.ui.panes.help import help_key, key_row, titled_keys
from zconsole.ui.themed_app import ThemedApp, begin
from zconsole.ui.widgets.draw import Line, Lines, Span, width_of
from zconsole.ui.widgets.lines_view import FooterView, LinesView
from zconsole.units import counted

_NO_POINTER = "  "
_ENDS = 26
"""Cells of the help and of Esc at the end of the keys."""


class ChoiceButton(Button):
    """A button on one line, with a pointer before its label while it has the focus."""

    app = getters.app(ThemedApp)

    def __init__(self, label: str, *, id: str) -> None:  # noqa: A002
        super().__init__(label, id=id, compact=True)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """Return the width of label and pointer; the pointer's cells are always reserved."""
        return super().get_content_width(container, viewport) + len(_NO_POINTER)

    def render(self) -> Content:
        """Return the label after the pointer, or after blanks."""
        glyphs = self.app.view_state.look.glyphs
        mark = f"{glyphs.pointer} " if self.has_focus else _NO_POINTER
        return Content(mark) + Content.from_text(self.label)


class ButtonScreen(Dialog[ScreenResultType], groups=("Buttons",)):
    """A screen with buttons below its text: Left and Right move among them, as Tab does.

    Shift+Tab goes to the text from any of them.
    """

    read_first = True

    def show_keys(self, keys: Sequence[Line], above: Lines = (), *, typing: bool = False) -> None:
        """Draw the keys below these lines, as many as fit; help and the last of them always fit.

        ``typing``: ``?`` would be typed, so F1 opens the help.
        """
        ends = (*help_key(self.look, typing=typing), Span("  "), *keys[-1])
        self.footer.show((*above, key_row(keys[:-1], ends, self.app.size.width)))

    def action_button(self, direction: int) -> None:
        """Focus the next button in a direction; from elsewhere, the first."""
        buttons = [button for button in self.query(Button) if button.display]
        here = self.focused
        if isinstance(here, Button) and here in buttons:
            index = min(max(buttons.index(here) + direction, 0), len(buttons) - 1)
            self.set_focus(buttons[index])  # at once: the next key may already be here
        elif buttons:
            beyond = isinstance(here, Input) and direction > 0  # it stands after the first button
            self.set_focus(buttons[min(int(beyond), len(buttons) - 1)])

    def focus_previous(self, selector: str | type[QueryType] = "*") -> Widget | None:
        """Leave the row of buttons upward at once, so that Enter then presses none of them."""
        chain = self.focus_chain
        if self.focused in chain[1:]:
            self.set_focus(chain[0])
            return chain[0]
        return super().focus_previous(selector)

    def action_press_button(self) -> None:
        """Press the button in focus, as textual does on its own; an action, so that help has it."""
        if isinstance(self.focused, Button):
            self.focused.press()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let Left and Right move through typed text first, and from its ends to the buttons."""
        here = self.focused
        if action == "button" and isinstance(here, Input):
            end = len(here.value) if parameters[0] == 1 else 0
            return here.cursor_position == end
        if action == "press_button" and not isinstance(self.focused, Button):
            return False
        return super().check_action(action, parameters)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Something that can be confirmed and run."""

    title: str
    body: Drawing
    """Its description."""
    run: Callable[[str | None], AsyncIterator[Span]]
    """Runs it, given the typed text; yields lines of output, neither cleaned nor wrapped."""
    typed: str | None = None
    """Text that must be typed first."""
    barred: bool = False
    """Whether it can only be read, not run."""
    verb: str = "Run"
    """Label of the button that runs it."""
    commands: tuple[str, ...] = ()
    """Its commands, for a shell."""
    checks: Sequence[str] = ()
    """Preconditions, rechecked when it runs."""
    leaves: bool = False
    """Whether the screen closes after the run; otherwise its output stays."""


def question(
    title: str,
    said: Sequence[Span],
    do: Callable[[], Awaitable[object]] | None = None,
    *,
    verb: str = "Yes",
    typed: str | None = None,
    barred: bool = False,
    commands: tuple[str, ...] = (),
) -> Confirmation:
    """Return a question whose answer runs no plan: the screen closes once ``do`` is done."""

    async def _run(_: str | None) -> AsyncIterator[Span]:
        if do is not None:
            await do()
        yield Span("")

    body = partial(said_lines, said)
    return Confirmation(title, body, _run, typed, barred, verb, commands, leaves=True)


class ConfirmScreen(ButtonScreen[None], groups=("Plan", "Result", "Buttons")):
    """A screen that shows a plan, or one of several alternatives, and runs it once confirmed."""

    # Typing on, or pressing Enter twice, must not run anything.
    AUTO_FOCUS = "#cancel"

    _typed = getters.query_one(Prompt)

    def __init__(self, confirmations: Sequence[Confirmation]) -> None:
        super().__init__()
        self._confirmations = tuple(confirmations)
        self._index = 0
        self._output: list[Span] = []
        self._state = "asking"
        """asking, running or over."""
        self._checks_shown = False

    def compose(self) -> ComposeResult:
        """Yield the description, then Cancel, the input, Run and the rest in the order of Tab."""
        yield LinesView(id="text", focusable=True)
        with Horizontal(id="choice"):
            yield ChoiceButton("Cancel", id="cancel")
            yield Prompt(id="typed")
            yield ChoiceButton("Run", id="run")
            yield ChoiceButton("Another way", id="other")
        yield FooterView(id="keys")

    @property
    def help_groups(self) -> tuple[str, ...]:
        """The groups of keys that work now."""
        if self._state != "asking":
            return ("Result",) * (self._state == "over")
        return (*("Plan",) * (len(self._confirmations) > 1), "Buttons")

    def copies(self) -> Offers:
        """Return the commands of the plan shown."""
        return tuple(("command", command) for command in self.confirmation.commands)

    @property
    def confirmed(self) -> bool:
        """Whether the run was started, rather than only looked at."""
        return self._state != "asking"

    @property
    def confirmation(self) -> Confirmation:
        """The alternative that is shown."""
        return self._confirmations[self._index]

    def on_mount(self) -> None:
        """Show whether there is more below after layout and whenever the text is scrolled."""
        self.watch(self.text, "scroll_y", self._show_hint, init=False)
        self.call_after_refresh(self._show_hint)

    def on_resize(self) -> None:
        """Show whether there is more below after the new layout."""
        self.call_after_refresh(self._show_hint)

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def show_focus(self, event: events.DescendantFocus | events.DescendantBlur) -> None:
        """Show whether the text has the focus, and what Enter does there."""
        if event.widget is self.text and self._state == "asking":
            self.update()

    def action_other_way(self) -> None:
        """Show the next alternative."""
        if self._state == "asking" and len(self._confirmations) < 2:
            self._warn("There is nothing else to choose from here")
        elif self._state == "asking":
            self._index = (self._index + 1) % len(self._confirmations)
            self.text.edge(-1)
            self.update()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable letter keys while a word has to be typed."""
        if action == "other_way" and self._asks_for_word:
            return False
        if action == "close_result" and self._state != "over":
            return False
        return super().check_action(action, parameters)

    def action_close_result(self) -> None:
        """Leave the screen after the result."""
        self.dismiss()

    def on_button_pressed(self, message: Button.Pressed) -> None:
        """Cancel, show another alternative, or run if the required text was typed."""
        if message.button.id == "cancel":
            self.dismiss()
        elif message.button.id == "other":
            self.action_other_way()
        else:
            self._confirm()

    def on_key(self, event: events.Key) -> None:
        """Send typed characters to the input from any focus, if a word has to be typed.

        Enter on the text shows the preconditions, which are only counted at first.
        """
        if event.key == "enter" and self._state == "asking" and self.focused is self.text:
            event.stop()
            if self._checks_shown or not self.confirmation.checks:
                self._warn("Tab goes to the buttons")
            else:
                self._checks_shown = True
                self.update()
                self.text.edge(1)
        elif self._asks_for_word and event.is_printable and event.character:
            event.stop()
            event.prevent_default()
            self.set_focus(self._typed)  # at once: the next key may already be here
            self._typed.insert_text_at_cursor(event.character)

    @property
    def _asks_for_word(self) -> bool:
        """Whether a word has to be typed now."""
        confirmation = self.confirmation
        needed = confirmation.typed is not None and not confirmation.barred
        return needed and self._state == "asking"

    def on_input_changed(self) -> None:
        """Drop the warning about the last key."""
        self._show_hint()

    def on_input_submitted(self) -> None:
        """Run on Enter after the typed name, which is the confirmation."""
        self._confirm()

    def _confirm(self) -> None:
        if self._state != "asking" or self.confirmation.barred:
            return
        typed = self._typed.value if self.confirmation.typed else None
        if self.confirmation.typed is not None and typed != self.confirmation.typed:
            word = f'"{self.look.text(self.confirmation.typed)}"'
            self._warn(f"That is not {word}" if typed else f"Type {word} first, then Enter")
            self.set_focus(self._typed)
            return
        self._state = "running"
        self.update()
        begin(self.app, partial(self._run, typed), group="plans", exit_on_error=False)

    async def _run(self, typed: str | None) -> None:
        try:
            async for said in self.confirmation.run(typed):
                self._output.append(said)
                self.update()
        except (OSError, ZconsoleError) as error:
            self._output.append(Span(str(error), "error"))
        else:
            if self.confirmation.leaves and self.is_attached:
                self.dismiss()
                return
        self._state = "over"
        self.update()

    def draw(self) -> None:
        """Draw the current text and buttons."""
        width = self.app.size.width
        confirmation = self.confirmation
        asking = self._state == "asking"
        title, *more = self.look.wrapped(confirmation.title, width, "title")
        if asking:
            lines = (*confirmation.body(self.look, width), *self._checks(width))
        else:
            said = self._output or [Span(self.look.glyphs.ellipsis, "dim")]
            lines = said_lines(said, self.look, width)
        self.text.show((*more, *lines), title)
        self._typed.display = self._asks_for_word
        self.query_one("#choice").display = asking
        run, other = self.query_one("#run", Button), self.query_one("#other", Button)
        run.display, run.label = asking and not confirmation.barred, confirmation.verb
        other.display = asking and len(self._confirmations) > 1
        if not asking:
            self.set_focus(self.text)
            self.text.edge(1)
        self._show_hint()

    def _checks(self, width: int) -> Sequence[Line]:
        """Return the preconditions, or a line with their count and the keys that show them."""
        checks = self.confirmation.checks
        if not checks:
            return ()
        pointer = self.look.glyphs.pointer if self.focused is self.text else ""
        if self._checks_shown:
            head: Line = (Span(f"{pointer} Preconditions (rechecked at run)", "bold"),)
            return (head, *said_lines([Span(text, "dim") for text in checks], self.look, width))
        said = f"{counted(len(checks), 'precondition')}, rechecked at run"
        if pointer:
            return tuple(self.look.wrapped(said, width, "", f" {pointer} "))
        return tuple(self.look.wrapped(f"{said} (Shift-Tab, Enter: show)", width, "dim"))

    def _show_hint(self) -> None:
        self._show_below(())

    def _show_below(self, warning: Lines) -> None:
        """Show a warning, or else the word to type if the row of keys has no room for it."""
        keys, above = self._keys(), warning
        if self._asks_for_word:
            word = f'"{self.look.text(self.confirmation.typed)}" to confirm'
            asked, width = (Span("Type ", "key"), Span(word, "dim")), self.app.size.width
            fits = width_of(asked) < self._typed.content_size.width
            self._typed.placeholder = f"type {word}" if fits else "type it here"
            if width_of(asked) <= width - _ENDS:
                keys.insert(0, asked)
            elif not warning:
                above = tuple(self.look.wrapped(f"Type {word}", width, "notice"))
        self.show_keys(keys, above, typing=self._asks_for_word)

    def _keys(self) -> list[Line]:
        """Return the keys that work now, the most important first and Esc last."""
        key = partial(titled_keys, self.look)
        if self._state == "running":
            return [key("back", "close; the command runs on")]
        if self._state == "over":
            return [key("close-result"), key("back", "back")]
        if self.focused is self.text:
            keys = [key("next-pane", "buttons")]
            if self.confirmation.checks and not self._checks_shown:
                keys.insert(0, key("press-button", "show preconditions"))
        else:
            keys = [key("press-button"), key("previous-button next-button", "buttons")]
        if not self._asks_for_word and (count := len(self._confirmations)) > 1:
            keys.insert(1, key("other-way", f"another way ({self._index + 1} of {count})"))
        more = [key("down", "more")] if self.text.has_more else []
        return [*more, *keys, key("back", "cancel")]

    def _warn(self, text: str) -> None:
        """Say why the last key did nothing, until the next key."""
        self._show_below(tuple(self.look.wrapped(text, self.app.size.width, "warning")))
