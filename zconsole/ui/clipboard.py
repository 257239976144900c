"""Copies a command, guid or path to the clipboard of the terminal, over ssh too (OSC 52)."""

from __future__ import annotations

from zconsole.system.printable import clean
from zconsole.ui.dialogs.screens import Offers, PickScreen
from zconsole.ui.themed_app import ThemedApp
from zconsole.ui.widgets.draw import Span

TMUX_COPIES = "tmux drops it unless its set-clipboard is on: tmux set -s set-clipboard on"


def copy_one(app: ThemedApp, offers: Offers) -> None:
    """Copy one of the texts that are offered; ask which of several."""
    if not offers:
        app.notify("nothing to copy here", timeout=4)
    elif len(offers) == 1:
        _copy(app, *offers[0])
    else:
        look = app.view_state.look
        lines = [(Span(f" {what:<9} {look.text(text)}"),) for what, text in offers]

        def _picked(index: int | None) -> None:
            if index is not None:
                _copy(app, *offers[index])

        app.push_screen(PickScreen("COPY", lambda _: lines, wide=True), _picked)


def _copy(app: ThemedApp, what: str, text: str) -> None:
    """Ask the terminal to copy it, without what a terminal or shell would act on.

    No terminal answers whether it has; tmux ignores it unless it is told not to.
    """
    safe = clean(text)
    app.copy_to_clipboard(safe)
    said = f"{what} sent to the terminal's clipboard: {safe}"
    in_tmux = app.view_state.options.in_tmux
    app.notify(f"{said}\n{TMUX_COPIES}" if in_tmux else said, timeout=4)
