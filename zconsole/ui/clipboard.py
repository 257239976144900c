"""Copies a command, guid or path to the clipboard of the terminal, over ssh too (OSC 52)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from textual.app import App

from zconsole.system.printable import clean
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.view_state import ViewState
from zconsole.ui.widgets.draw import Span

TMUX_COPIES = "tmux drops it unless its set-clipboard is on: tmux set -s set-clipboard on"


def copy_one(app: App[None], offers: Sequence[tuple[str, str]], view_state: ViewState) -> None:
    """Copy one of the texts that are offered, each with what it is; ask which of several."""
    copy = partial(_copy, app, in_tmux=view_state.options.in_tmux)
    if not offers:
        app.notify("nothing to copy here", timeout=4)
    elif len(offers) == 1:
        copy(*offers[0])
    else:
        lines = [(Span(f" {what:<9} {view_state.look.text(text)}"),) for what, text in offers]

        def _picked(index: int | None) -> None:
            if index is not None:
                copy(*offers[index])

        app.push_screen(PickScreen("COPY", lambda _: lines, wide=True), _picked)


def _copy(app: App[None], what: str, text: str, *, in_tmux: bool) -> None:
    """Ask the terminal to copy it, without what a terminal or shell would act on.

    No terminal answers whether it has; tmux ignores it unless it is told not to.
    """
    safe = clean(text)
    app.copy_to_clipboard(safe)
    said = f"{what} sent to the terminal's clipboard: {safe}"
    app.notify(f"{said}\n{TMUX_COPIES}" if in_tmux else said, timeout=4)
