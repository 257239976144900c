"""Choosing a theme from a list; the screen behind shows the one at the cursor."""

from __future__ import annotations

from functools import partial

from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.state_dir import StateError
from zconsole.ui.background import begin
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.themed_app import ThemedApp
from zconsole.ui.widgets.draw import Span


def open_theme_list(app: ThemedApp) -> None:
    """Put the list over the console; each theme is put on as the cursor comes to it."""
    themes, before = app.theme_files, app.theme
    names = sorted(themes)

    def _done(index: int | None) -> None:
        app.theme = before if index is None else names[index]
        if index is not None:
            begin(app, partial(_keep, app, names[index]), group="theme", exclusive=True)

    def _preview(index: int) -> None:
        app.theme = names[index]

    lines = [(Span(f" {app.view_state.look.text(name)}"),) for name in names]
    screen = PickScreen(
        "THEMES  Enter keep, Esc undo",
        lambda _: lines,
        start=names.index(before) if before in names else 0,
        moved=_preview,
    )
    app.push_screen(screen, _done)


async def _keep(app: ThemedApp, name: str) -> None:
    """For the next start; a disk that does not answer keeps nobody waiting."""
    if (choice := app.view_state.options.choice) is None:
        return
    try:
        await in_daemon_thread(partial(choice.keep, name, sixteen=app.sixteen))
    except StateError as error:
        app.notify(f"theme not remembered: {error}", timeout=4, markup=False)
