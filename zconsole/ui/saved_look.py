"""How the console looks, theme, units, order and panes: chosen, and saved to the configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from zconsole.config.file import save
from zconsole.config.settings import PANES
from zconsole.errors import ZconsoleError
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.ui.background import begin
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.main_screen import MainScreen
from zconsole.ui.theme.files import DEFAULT, SIXTEEN, find_themes
from zconsole.ui.themed_app import ThemedApp
from zconsole.ui.widgets.draw import Line, Span, broken

Values = Mapping[str, Any]
"""Of settings, by name."""


def save_look(app: ThemedApp, screen: MainScreen) -> None:
    """Save what differs from what a console looks like at its start."""
    _begin(app, {**_theme_of(app), **_arrangement_of(app, screen)})


def choose_theme(app: ThemedApp) -> None:
    """Ask for a theme; each is put on as the cursor comes to it, and the one kept is saved."""
    names, before = sorted(app.theme_files), app.theme

    def _done(index: int | None) -> None:
        app.theme = before if index is None else names[index]
        if index is not None:
            _keep_theme(app)

    def _preview(index: int) -> None:
        app.theme = names[index]

    lines = [(Span(f" {app.view_state.look.text(name)}"),) for name in names]
    start = names.index(before) if before in names else 0
    title = "THEMES  Enter keep, Esc undo"
    about = partial(_kept_where, app)
    app.push_screen(
        PickScreen(title, lambda _: lines, start=start, moved=_preview, about=about), _done
    )


def _kept_where(app: ThemedApp, _: int, width: int) -> list[Line]:
    """What keeping a theme does, said before: as root its file is the whole machine's."""
    options = app.view_state.options
    if not options.saves:
        said = "Enter keeps it for this run"
    elif options.config is not None:
        said = f"Enter saves it to {app.view_state.look.text(str(options.config.path))}"
    else:
        return []
    return [(Span(f" {line}", "dim"),) for line in broken(said, width - 2)]


def _keep_theme(app: ThemedApp) -> None:
    """Save only the theme, or say that it is not."""
    if app.view_state.options.saves:
        _begin(app, _theme_of(app))
    else:
        app.notify(f"theme {app.theme} for this run only: a demo saves nothing", timeout=6)


def _begin(app: ThemedApp, settings: Values) -> None:
    """Save in a thread: a disk that does not answer keeps nobody waiting."""
    begin(app, partial(_save, app, settings), group="look", exclusive=True)


async def _save(app: ThemedApp, settings: Values) -> None:
    options = app.view_state.options
    if (config := options.config) is None:
        return
    usual = {"theme": DEFAULT, "theme-16": SIXTEEN}
    changes = {
        name: value
        for name, value in settings.items()
        if value != (options.setting(name) or usual.get(name))
    }
    if not changes:
        app.notify(f"nothing to save: the console looks like this at its start ({config.path})")
        return
    named = partial(_named, {name: theme.path for name, theme in app.theme_files.items()})
    try:
        await in_daemon_thread(partial(_write, config.path, changes, named))
    except (OSError, ZconsoleError) as error:
        app.notify(f"not saved: {error}", severity="warning", timeout=8, markup=False)
        return
    config = replace(config, values={**config.values, **changes})
    app.view_state.options = replace(options, config=config)
    said = ", ".join(f"{name} {_shown(value)}" for name, value in changes.items())
    app.notify(f"saved to {config.path}: {said}", timeout=8, markup=False)


def _shown(value: Any) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _write(path: Path, changes: Values, named: Callable[[str], str]) -> None:
    themes = {name: named(changes[name]) for name in ("theme", "theme-16") if name in changes}
    save(path, {**changes, **themes})


def _named(paths: Mapping[str, Path], theme: str) -> str:
    """The name of a theme that is found by it, or else the path of its file."""
    if theme in find_themes(os.environ).found or theme not in paths:
        return theme
    return str(paths[theme].absolute())


def _theme_of(app: ThemedApp) -> Values:
    """The theme, of this kind of terminal."""
    return {"theme-16" if app.sixteen else "theme": app.theme}


def _arrangement_of(app: ThemedApp, screen: MainScreen) -> Values:
    panes = tuple(pane for pane in PANES if screen.chosen.get(pane, True))
    return {
        "units": app.view_state.look.unit,
        "sort": screen.devices.arrangement.sort,
        **({"panes": panes} if panes else {}),
    }
