"""Choice of the theme, and saving of the console's look to the configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from zconsole.config.file import save
from zconsole.config.settings import PANES
from zconsole.errors import ZconsoleError
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.ui.dialogs.screens import PickList, PickScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.main_screen import MainScreen
from zconsole.ui.theme.files import DEFAULT, SIXTEEN, find_themes
from zconsole.ui.themed_app import ThemedApp, begin
from zconsole.ui.widgets.draw import Line, Span, broken

Values = Mapping[str, Any]
"""Values of settings, by name."""


def save_look(app: ThemedApp, screen: MainScreen) -> None:
    """Save what differs from the look with which the console would start."""
    panes = tuple(pane for pane in PANES if screen.chosen.get(pane, True))
    arranged = {"units": app.view_state.look.unit, "sort": screen.devices.arrangement.sort}
    _begin(app, {**_theme_of(app), **arranged, **({"panes": panes} if panes else {})})


def choose_theme(app: ThemedApp) -> None:
    """Ask for a theme, with a preview of the one at the cursor, and save the one that is kept."""
    names, before = sorted(app.theme_files), app.theme

    def _done(index: int | None) -> None:
        app.theme = before if index is None else names[index]
        if index is None:
            return
        if app.view_state.options.saves:
            _begin(app, _theme_of(app))
        else:
            app.notify(f"theme {app.theme} for this run only: a demo saves nothing", timeout=6)

    def _preview(index: int) -> None:
        app.theme = names[index]

    themes = PickList(
        "THEMES  Enter keep, Esc undo",
        lambda look, _: [(Span(f" {look.text(name)}"),) for name in names],
        start=names.index(before) if before in names else 0,
        about=partial(_kept_where, app),
        moved=_preview,
        side=True,
    )
    app.push_screen(PickScreen(themes), _done)


def _kept_where(app: ThemedApp, _: int, look: DisplayFormat, width: int) -> list[Line]:
    """Tell where Enter saves the theme; as root, that file is the whole machine's."""
    options = app.view_state.options
    if not options.saves:
        said = "Enter keeps it for this run"
    elif options.config is not None:
        said = f"Enter saves it to {look.text(str(options.config.path))}"
    else:
        return []
    return [(Span(f" {line}", "dim"),) for line in broken(said, width - 2)]


def _begin(app: ThemedApp, settings: Values) -> None:
    """Save in a thread, so that a disk that hangs does not block the console."""
    begin(app, partial(_save, app, settings), group="look", exclusive=True)


async def _save(app: ThemedApp, settings: Values) -> None:
    options = app.view_state.options
    if (config := options.config) is None:
        return
    path = config.path
    usual = {"theme": DEFAULT, "theme-16": SIXTEEN}
    changes = {
        name: value
        for name, value in settings.items()
        if value != (options.setting(name) or usual.get(name))
    }
    if not changes:
        app.answer(f"nothing to save: the console looks like this at its start ({config.path})", 5)
        return

    def _write() -> None:
        """Save a theme by its name if it is found by that, else by the path of its file."""
        found, kept = find_themes(os.environ).found, dict(changes)
        for name in {"theme", "theme-16"} & changes.keys():
            theme = app.theme_files.get(changes[name])
            if theme is not None and changes[name] not in found:
                kept[name] = str(theme.path.absolute())
        save(path, kept)

    try:
        await in_daemon_thread(_write)
    except (OSError, ZconsoleError) as error:
        app.notify(f"not saved: {error}", severity="warning", timeout=8)
        return
    config = replace(config, values={**config.values, **changes})
    app.view_state.options = replace(options, config=config)
    said = ", ".join(
        f"{name} {' '.join(value) if isinstance(value, tuple) else value}"
        for name, value in changes.items()
    )
    app.notify(f"saved to {config.path}: {said}", timeout=8)


def _theme_of(app: ThemedApp) -> Values:
    """Return the theme under the setting for this kind of terminal."""
    return {"theme-16" if app.sixteen else "theme": app.theme}
