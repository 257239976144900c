"""What dialogs and flows know of the console: its view state, its theme and what is on top."""

from __future__ import annotations

from collections.abc import Iterable

from zconsole.ui.safe_app import SafeApp
from zconsole.ui.theme.files import ThemeFile
from zconsole.ui.theme.styles import Palette, palette, textual_theme
from zconsole.ui.view_state import ViewState


class ThemedApp(SafeApp):
    """An app drawn in theme files, with screens over its main one."""

    def __init__(
        self, view_state: ViewState, themes: Iterable[ThemeFile], ansi_color: bool | None
    ) -> None:
        super().__init__(ansi_color=ansi_color)
        self.view_state = view_state
        self.theme_files = {theme.name: theme for theme in themes}
        for theme in self.theme_files.values():
            self.register_theme(textual_theme(theme))

    @property
    def sixteen(self) -> bool:
        """Whether the terminal has but sixteen colors."""
        return self.console.color_system in ("standard", None) and not self.no_color

    @property
    def palette(self) -> Palette:
        """The styles of the present theme."""
        theme = self.theme_files.get(self.theme)
        return palette(theme, no_color=self.no_color) if theme else {}

    @property
    def main_on_top(self) -> bool:
        """Whether no other screen is over the main one."""
        return len(self.screen_stack) == 1
