"""A text that names an act: by its command, and in the console by the keys that do it."""

from __future__ import annotations

from collections.abc import Callable


class KeyedText(str):
    """A text as the command line says it, with how the console says it.

    What is made of it by formatting is the command line's text; ``+`` keeps both.
    """

    by_key: str
    """With ``{keys}`` for the keys that lead to the act."""
    titles: tuple[str, ...]
    """What the table of keys calls those."""

    def __new__(cls, command: str, by_key: str, *titles: str) -> KeyedText:
        """``command`` is the text where there are no keys."""
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
        """As the console says it; ``way`` gives the keys of these titles, in words."""
        return self.by_key.replace("{keys}", way(*self.titles))
