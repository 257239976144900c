"""An animated SVG of a recording, without scripts or fonts, so that it works in a README.

Each distinct row is drawn once. A screen is a group that uses rows, and CSS shows one such group at
a time. Where animation is not supported or not wanted, one screen stands still.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tests.cast.asciicast import INPUT, Cast
from tests.cast.rows import BASELINE, HEIGHT, WIDTH, Pen
from tests.cast.screens import Row, Screen, screens

FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
FONT_SIZE = 16.6
"""Font size at which a letter of DejaVu is one cell wide."""
MARGIN, BAR = 14, 38
"""Margin around the screen, and height of the bar above it, which shows the keys."""
EDGE, TITLE, KEY, CAP = "#30363d", "#8b949e", "#e6edf3", "#30363d"
"""Colors of the window's edge, its title, a pressed key and its key cap."""
KEY_SECONDS = 1.0
"""Seconds for which a pressed key is shown."""
KEYS = {"\r": "Enter", "\x1b": "Esc"}
"""Labels of keys that are not printable characters."""
CSS = (
    f"text{{font:{FONT_SIZE}px {FONT};white-space:pre}}"
    "path{shape-rendering:crispEdges}"
    ".m{visibility:hidden;animation:step-end infinite}"
    ".m.s{visibility:visible}"
    "@media(prefers-reduced-motion:reduce){.m{animation:none!important}}"
)


@dataclass(frozen=True)
class Moving:
    """A group that is visible from one moment to another, in seconds."""

    begin: float
    end: float
    body: str
    still: bool = False


def drawn(cast: Cast, still: float) -> str:
    """Return the picture; ``still`` is the moment shown where animation is off."""
    shown = screens(cast)
    pen = Pen(_ground(shown))
    rows = {row: pen.drawn(row) for screen in shown for row in screen.rows}
    names = {row: f"r{number}" for number, row in enumerate(rows) if rows[row]}
    moving = [*_screens(shown, names, cast.seconds, still), *_keys(cast)]
    style = (
        CSS
        + f".m{{animation-duration:{cast.seconds:g}s}}"
        + pen.css()
        + "".join(_animations(moving, cast.seconds))
    )
    lines = [
        *_opening(cast, style, pen.ground),
        "<defs>",
        *(f'<g id="{name}">{rows[row]}</g>' for row, name in names.items()),
        "</defs>",
        *_groups(moving),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _ground(shown: Sequence[Screen]) -> str:
    """Return the most frequent background color."""
    pieces = (piece for screen in shown for row in screen.rows for piece in row)
    return Counter(piece.style.ground for piece in pieces).most_common(1)[0][0]


def _screens(
    shown: Sequence[Screen], names: dict[Row, str], seconds: float, still: float
) -> Iterator[Moving]:
    ends = (*(screen.at for screen in shown[1:]), seconds)
    for screen, end in zip(shown, ends, strict=True):
        uses = (
            f'<use href="#{names[row]}" y="{line * HEIGHT + BASELINE}"/>'
            for line, row in enumerate(screen.rows)
            if row in names
        )
        yield Moving(screen.at, end, "".join(uses), screen.at <= still < end)


def _keys(cast: Cast) -> Iterator[Moving]:
    """Yield each key, shown at the right end of the bar until the next one or for KEY_SECONDS."""
    pressed = [event for event in cast.events if event.kind == INPUT]
    nexts = (*(event.at for event in pressed[1:]), cast.seconds)
    for event, following in zip(pressed, nexts, strict=False):
        name = KEYS.get(event.text, event.text)
        width = (len(name) + 2) * WIDTH
        left = cast.columns * WIDTH - width
        cap = f'<rect x="{left}" y="-31" width="{width}" height="24" rx="5" fill="{CAP}"/>'
        text = f'<text x="{left + WIDTH}" y="-14" fill="{KEY}">{escape(name)}</text>'
        yield Moving(event.at, min(following, event.at + KEY_SECONDS), cap + text)


def _animations(moving: Sequence[Moving], seconds: float) -> Iterator[str]:
    """Yield the CSS that shows each group in its time."""
    for number, group in enumerate(moving):
        begin, end = (f"{100 * at / seconds:.4g}%" for at in (group.begin, group.end))
        yield (
            f"@keyframes k{number}{{0%{{visibility:hidden}}{begin}{{visibility:visible}}"
            f"{end}{{visibility:hidden}}}}#m{number}{{animation-name:k{number}}}"
        )


def _groups(moving: Sequence[Moving]) -> Iterator[str]:
    for number, group in enumerate(moving):
        yield f'<g id="m{number}" class="m{" s" * group.still}">{group.body}</g>'


def _opening(cast: Cast, style: str, ground: str) -> Iterator[str]:
    """Yield the window with everything static; later elements are drawn on its screen."""
    width = cast.columns * WIDTH + 2 * MARGIN
    height = cast.rows * HEIGHT + BAR + MARGIN
    box = f'width="{width}" height="{height}"'
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-MARGIN} {-BAR} {width} {height}" '
        f'{box} xml:space="preserve" role="img">'
    )
    yield f"<title>{escape(cast.title)}</title><style>{style}</style>"
    yield (
        f'<rect x="{-MARGIN}" y="{-BAR}" {box} rx="8" fill="#{ground}" '
        f'stroke="{EDGE}" stroke-width="2"/>'
    )
    yield f'<text y="-14" fill="{TITLE}">$ {escape(cast.title)}</text>'
