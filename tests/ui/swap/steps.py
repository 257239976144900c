"""Steps through a guided swap on the simulated shelf, by keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tests.ui.actions.acting import Acting, acting
from zconsole.sim.backends.swap import simulated_swap
from zconsole.swap.disk import Checklist
from zconsole.swap.store import SwapBackend
from zconsole.ui.dialogs.confirm import ConfirmScreen
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.swap.swap_screen import SwapScreen

BUSY = ("plans", "swap-look", "swap-report", "swaps")


def keys_of(word: str) -> tuple[str, ...]:
    """Return the keys that type a word."""
    return tuple("space" if letter == " " else letter for letter in word)


class Swapping(Acting):
    """A console on a shelf with bays, and the backend of its swaps."""

    swap: SwapBackend

    def store_new(self) -> Checklist:
        """Return the newest saved checklist."""
        return self.swap.make_store(False).read()[0]

    async def settled(self) -> None:
        """Wait until all workers that read or act have ended."""
        for _ in range(3000):
            await self.rest()
            workers = [w for w in self.app.workers if w.group in BUSY]
            if all(w.is_finished for w in workers):
                return
            await self.pilot.pause(0.01)
        raise AssertionError(self.screen)

    async def until(self, seen: Callable[[], bool]) -> None:
        """Wait until ``seen`` returns true; simulated time stands still."""
        for _ in range(3000):
            if seen():
                await self.settled()
                return
            await self.rest()
            await self.pilot.pause(0.01)
        raise AssertionError(self.screen)

    async def pass_by(self, seconds: float = 1.0) -> None:
        """Advance simulated time, and let the checklist be checked."""
        self.feed.step(seconds)
        await self.rest()
        screen = self.app.screen
        if isinstance(screen, SwapScreen):
            screen.look_again()
        await self.settled()

    async def on(self, kind: type) -> None:
        """Wait until a screen of this kind is on top."""
        await self.until(lambda: isinstance(self.app.screen, kind))

    async def choose(self) -> None:
        """Press C, which shows the ways to swap."""
        await self.press("C")
        await self.on(ConfirmScreen)

    async def begin(self, way: str = "Pull first") -> None:
        """Press C, then begin the way whose title starts like this."""
        await self.choose()
        while f": {way}" not in self.screen.splitlines()[0]:
            await self.press("v")
        await self.press("right", "enter")
        await self.on(SwapScreen)
        await self.pass_by()

    async def do(self, key: str = "enter", word: str = "") -> None:
        """Press a key that the checklist offers, and confirm."""
        await self.press(key)
        await self.on(ConfirmScreen)
        asked = self.app.screen
        assert isinstance(asked, ConfirmScreen)
        if word:
            await self.typed(*keys_of(word))
            await self.press("enter")
        else:
            await self.press("right", "enter")
        # On a busy machine the key may still be on its way, and Esc would overtake it.
        await self.until(lambda: asked.confirmed or self.app.screen is not asked)
        if isinstance(self.app.screen, ConfirmScreen):
            await self.press("escape")
        await self.pass_by()

    async def to_pull(self) -> None:
        """Begin, take the disk offline, switch its light on: it may now be pulled."""
        await self.begin()
        assert "Switch on the light of Slot 07" in await self.read(self.do())
        await self.do()

    async def at_another(self) -> None:
        """Leave the checklist, and press C on another row, which shows a list of choices."""
        await self.press("escape")
        await self.to("GSKHFHS4")
        await self.press("C")

    async def pick(self, text: str) -> None:
        """Choose the list line that contains a text."""
        await self.on(PickScreen)
        view = self.app.screen.view  # type: ignore[attr-defined]
        lines = ("".join(s.text for s in view.line_at(n)) for n in range(view.line_count()))
        wanted = next(n for n, line in enumerate(lines) if text in line)
        await self.typed("g", *["j"] * wanted)
        await self.press("enter")

    async def pull(self, bay: str) -> None:
        """Press O: pull the disk of a bay."""
        await self.press("O")
        await self.pick(f"{bay} ")
        await self.on(SwapScreen)
        await self.pass_by()

    async def insert(self, serial: str, bay: str) -> None:
        """Press I: insert a disk of the drawer."""
        await self.press("I")
        await self.pick(serial)
        await self.settled()
        await self.pick(bay)
        await self.on(SwapScreen)
        await self.pass_by()

    async def swapped(self) -> str:
        """Begin, pull the old disk, insert and fill the first new one; returns its serial."""
        await self.to_pull()
        await self.pull("Slot 07")
        new = self.swap.hands.drawer()[0].rpartition(" ")[2]
        await self.insert(new, "Slot 07")
        await self.do()
        return new

    async def seen(self, seen: str) -> str:
        """Advance simulated time until the screen shows a text."""
        for _ in range(200):
            if seen in await self.read(self.pass_by(20.0)):
                return self.screen
        raise AssertionError(self.screen)


@asynccontextmanager
async def swapping(
    size: tuple[int, int] = (100, 40),
    backend: SwapBackend | None = None,
    scenario: str = "swap",
    **options: object,
) -> AsyncIterator[Swapping]:
    """Open a console on the shelf of the scenario."""
    async with acting(scenario, size=size, **options) as a:  # type: ignore[arg-type]
        s = Swapping(a.app, a.pilot, a.feed, a.backend)
        s.swap = backend or simulated_swap(a.feed.world)
        s.session.swaps.machine_swaps = s.swap
        yield s


def ran(s: Swapping) -> list[str]:
    """Return the zpool commands that were run, in order."""
    argvs = (record["argv"] for record in s.log if record.get("argv"))
    return list(dict.fromkeys(argv[1] for argv in argvs))


async def question(s: Swapping, key: str) -> str:
    """Return what a key asks after the first step is done."""
    await s.begin()
    await s.do()
    await s.press(key)
    return await s.read(s.on(ConfirmScreen))


async def main_line(s: Swapping) -> str:
    """Return the main screen's line about the checklist."""
    screen = await s.read(s.settled())
    return next(
        (line.strip() for line in screen.splitlines() if "disk swap unfinished" in line), ""
    )
