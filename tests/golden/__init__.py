"""Golden screens: text with styles at several sizes, and a few pictures.

``python -m tests.golden`` draws them all anew; the diff shows what changed. The animated picture is
made by ``python -m tests.cast``.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from tests.ui import frames
from tests.ui.fakes import FakeFeed, console
from tests.ui.styled import styled
from zconsole.ui.new_file import portable

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Shot:
    """One screen: its frames, size, and keys pressed."""

    name: str
    scenes: tuple[str, ...]
    size: tuple[int, int] = (80, 24)
    keys: tuple[str, ...] = ()
    plain: bool = False
    theme: str = "dark"
    picture: bool = False

    @property
    def path(self) -> Path:
        return HERE / f"{self.name}.{'svg' if self.picture else 'txt'}"


SIZES = ((60, 15), (80, 24), (120, 40), (200, 50))
TEXTS = (
    *(Shot(f"resilver-{w}x{h}", ("resilver",), (w, h)) for w, h in SIZES),
    *(
        Shot(f"{name}-80x24", (name,))
        for name in (
            "healthy",
            "imbalance",
            "swap",
            "suspended",
            "deserted",
            "rebuilds",
            "unrestored",
            "odd_names",
        )
    ),
    Shot("suspended-60x15", ("suspended",), (60, 15)),
    Shot("resilver-ascii", ("resilver",), plain=True),
    Shot("odd-ascii", ("odd_names",), plain=True),
    Shot("several-pools", ("resilver", "healthy", "imbalance")),
    Shot("overview", ("resilver", "healthy", "imbalance"), keys=("o",)),
    Shot("detail", ("resilver",), (100, 40), ("j",) * 6 + ("enter",)),
    Shot("help", ("resilver",), (80, 64), ("question_mark",)),
    *(
        Shot(f"whatif-{w}x{h}", ("imbalance",), (w, h), ("w", *"+raidz1:7x16T raidz1-1=5x16T"))
        for w, h in ((60, 15), (80, 24), (200, 50))
    ),
    Shot("whatif-wrong", ("imbalance",), keys=("w", *"+raidz1:7y16T")),
    *(
        Shot(f"flaky-{w}x{h}", ("flaky",), (w, h), ("j",) * 6 + ("enter",) * (h >= 50))
        for w, h in ((60, 15), (80, 24), (200, 50))
    ),
    Shot("thousand", ("many",), keys=("G",)),
    Shot("too-small", ("resilver",), (40, 8)),
)
PICTURES = (
    Shot("wide", ("resilver",), (160, 44), ("j",) * 6 + ("enter",), picture=True),
    Shot("balance", ("imbalance",), theme="light", picture=True),
    Shot("suspended", ("suspended",), theme="colorblind", picture=True),
)


async def draw(shot: Shot) -> str:
    """Return the screen of a shot, as text with styles, or as SVG."""
    made = tuple(frames.ALL[name]() for name in shot.scenes)
    app = console(FakeFeed(made), plain=shot.plain, theme=shot.theme)
    async with app.run_test(size=shot.size) as pilot:
        await pilot.pause()
        for key in shot.keys:
            await pilot.press(key)
        await pilot.pause()
        return portable(app.export_screenshot(simplify=True)) if shot.picture else styled(app)


def write_all() -> None:
    """Draw every screen anew."""
    for shot in (*TEXTS, *PICTURES):
        shot.path.write_text(asyncio.run(draw(shot)), encoding="utf-8")
