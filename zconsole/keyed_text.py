"""Text that mentions an action: by its command, or in the console by the keys that do it."""

from __future__ import annotations

from collections.abc import Callable


class KeyedText(str):
    """A string for the command line, with a second form for the console.

    Formatting it yields the plain command-line text; ``+`` keeps both forms.
    """

    by_key: str
    """The console's form, with ``{keys}`` in place of the keys that do the action, pressed one
    after another, or ``{key}`` in place of each of them."""
    titles: tuple[str, ...]
    """Titles of these keys in the table of keys."""

    def __new__(cls, command: str, by_key: str, *titles: str) -> KeyedText:
        """Create the text; ``command`` is the form without keys."""
        made = super().__new__(cls, command)
        made.by_key, made.titles = by_key, titles
        return made

    def __add__(self, text: str) -> KeyedText:
        return KeyedText(str(self) + text, self.by_key + text, *self.titles)

    def __radd__(self, text: str) -> KeyedText:
        return KeyedText(text + str(self), text + self.by_key, *self.titles)

    def __getnewargs__(self) -> tuple[str, ...]:  # type: ignore[override]
        return (str(self), self.by_key, *self.titles)

    def told(self, way: Callable[..., str]) -> str:
        """Return the console's form; ``way`` returns the keys of these titles in words."""
        said = self.by_key.replace("{keys}", way(*self.titles))
        for title in self.titles:
            said = said.replace("{key}", way(title), 1)
        return said
