"""The console that can act: its keys ask, plan, confirm, run and follow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Sequence
from functools import partial
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from zconsole.actions.execute import Event, Executor
from zconsole.actions.growth import plan_expand, space_gained
from zconsole.actions.kit import Kit
from zconsole.actions.look import frame_look, situation_of
from zconsole.actions.plan import Facts, Outcome, Plan, Situation
from zconsole.actions.target import key_of
from zconsole.errors import ZconsoleError
from zconsole.sources.base import Capabilities
from zconsole.topology import data_vdevs
from zconsole.ui.actions.confirm import ConfirmScreen, Deed, Said
from zconsole.ui.actions.keys import ACTIONS, offers
from zconsole.ui.actions.lines import plan_lines
from zconsole.ui.actions.menu import Entry, Planner, menu_lines, row_entries, scan_entries
from zconsole.ui.actions.tunablesflow import tunables_flow
from zconsole.ui.actions.watch import Watch
from zconsole.ui.actions.wizard import attach_flow, batch_flow, replace_flow
from zconsole.ui.console import Console
from zconsole.ui.messages import FramesReady
from zconsole.ui.screens import PickScreen

_ROLES = {
    "begun": "accent",
    "output": "",
    "skipped": "dim",
    "warning": "warning",
    "failed": "error",
    "refused": "error",
    "done": "notice",
}


class ActingConsole(Console):
    """The live screen with keys that change the pools it shows."""

    CSS_PATH: ClassVar = ["../console.tcss", "actions.tcss"]  # type: ignore[assignment]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(key.keys), key.action, key.text, show=False) for key in ACTIONS
    ]

    def __init__(self, *args: Any, kit: Kit, **options: Any) -> None:
        super().__init__(*args, **options)
        self.kit = kit
        self.watch_ = Watch(self.feed)
        self._source: Capabilities | None = None

    def on_frames_ready(self, message: FramesReady) -> None:
        """Before the round is shown: wake who waits for it, mark changes, report ends."""
        self._source = message.update.capabilities
        self.watch_.take(message.update)
        self.showing.offers = offers(self.denied)
        changes = self.kit.control.changes()
        if changes:
            frames = tuple(self.watch_.marked(f, changes) for f in message.update.frames)
            message.update = type(message.update)(frames, message.update.capabilities)
        for plan, outcome in self.watch_.ended():
            self._report(plan, outcome)
        for frame in self.watch_.scans_over():
            self._put_back(frame.guid)

    def on_mount(self) -> None:
        """Begin with what an earlier console may have left."""
        self.offer_to_put_back()

    def offer_to_put_back(self) -> None:
        """Tell of tunables that a console which is gone had set."""
        if left := self.kit.control.orphans():
            names = ", ".join(left)
            self.notify(
                f"A console that is no longer there had set {names}; T, then u, puts it back.",
                severity="warning",
                timeout=20,
                markup=False,
            )

    @property
    def denied(self) -> str:
        """Why nothing may be changed: read-only, a recording, not root; empty when it may."""
        if self.showing.options.read_only:
            return "read-only"
        if self._source is not None and not self._source.live:
            return "a recording cannot be acted on"
        return self.kit.denied or (self._source.denied if self._source else "")

    # Keys

    def action_next_pane(self, direction: int) -> None:
        """Move the focus between panes, or between the parts of a question."""
        if not self._on_main and isinstance(self.screen, ConfirmScreen):
            (self.screen.focus_next if direction > 0 else self.screen.focus_previous)()
            return
        super().action_next_pane(direction)

    def action_actions(self) -> None:
        """List everything that can be done with the row at the cursor."""
        key = self._cursor() or ""
        self._flow(self._menu("ACTIONS", partial(row_entries, key=key), key))

    def action_scans(self) -> None:
        """List what can be done with scrubs and resilvers."""
        self._flow(self._menu("SCANS", scan_entries, ""))

    def action_replace(self) -> None:
        """Begin to replace the device at the cursor."""
        key = self._cursor()
        if key is None:
            self.notify("put the cursor on a device first", timeout=4)
            return
        self._flow(replace_flow(self, key))

    def action_tunables(self) -> None:
        """Show the tunables."""
        self._flow(tunables_flow(self))

    # What flows use

    async def situation(self, paths: tuple[str, ...] = ()) -> Situation:
        """The pool on show, with facts asked for now. Raises UnavailableError without any."""
        frame = self.showing.frame
        if frame is None:
            raise ZconsoleError("nothing is known of a pool yet")
        bare = situation_of(frame, Facts())
        facts = await self.kit.ask(bare.pool, bare.suspended, paths)
        return situation_of(frame, facts)

    async def pick(self, screen: PickScreen) -> int | None:
        """What is picked on a list."""
        return await self.push_screen_wait(screen)

    async def confirm(self, ways: Sequence[Planner], paths: tuple[str, ...] = ()) -> None:
        """Show the plan, in each of its ways, and let it be run."""
        situation = await self.situation(paths)
        deeds = [self._deed(way(situation), situation.facts, paths) for way in ways]
        # A way that is refused stands last: the first is what Enter would run.
        deeds.sort(key=lambda deed: deed.barred)
        await self.push_screen_wait(ConfirmScreen(deeds, self.showing.look, self._palette))

    @property
    def colors(self) -> Any:
        """The palette for screens of flows."""
        return self._palette

    def _deed(self, plan: Plan, facts: Facts, paths: tuple[str, ...]) -> Deed:
        denied = self.denied
        look = frame_look(self.watch_.fresh, self.kit.ask, paths)
        executor = Executor(self.kit.runner, look, self.kit.log, denied, self.kit.clock)
        return Deed(
            plan.title,
            lambda width: plan_lines(plan, denied, self.showing.look, width),
            partial(self._carry_out, plan, facts, executor),
            plan.needs_typed,
            barred=plan.refused is not None or bool(denied),
        )

    async def _carry_out(
        self, plan: Plan, facts: Facts, executor: Executor, typed: str | None
    ) -> AsyncIterator[Said]:
        kind = ""
        try:
            async for event in executor.run(plan, typed):
                kind = event.kind
                for said in _said(event):
                    yield said
        except ZconsoleError as error:
            yield Said(str(error), "error")
            return
        if kind == "done" and plan.follow is not None:
            self.watch_.follow(plan, facts)
            yield Said("Followed to its end; that will be told.", "dim")

    # Inside

    def _flow(self, flow: Coroutine[Any, Any, None]) -> None:
        if not self._on_main or self.showing.frame is None:
            flow.close()
            return
        self.run_worker(self._guarded(flow), group="flow", exclusive=True)

    async def _guarded(self, flow: Coroutine[Any, Any, None]) -> None:
        try:
            await flow
        except ZconsoleError as error:
            self.notify(str(error), severity="error", markup=False)

    async def _menu(self, title: str, entries: Any, key: str) -> None:
        situation = await self.situation()
        found: tuple[Entry, ...] = entries(situation)
        look = self.showing.look
        chosen = await self.pick(
            PickScreen(
                title, lambda width: menu_lines(found, look, width), self._palette, wide=True
            )
        )
        if chosen is None:
            return
        entry = found[chosen]
        flows = {"batch": batch_flow, "attach": attach_flow}
        if entry.ways:
            await self.confirm(entry.ways)
        elif entry.flow in flows:
            await flows[entry.flow](self, key)
        else:
            await replace_flow(self, key, give_back=entry.flow == "give_back")

    def _cursor(self) -> str | None:
        item = self.devices.current
        return item.key if item is not None and item.row is not None else None

    def _report(self, plan: Plan, outcome: Outcome) -> None:
        executor = Executor(
            self.kit.runner,
            frame_look(self.watch_.fresh, self.kit.ask),
            self.kit.log,
            clock=self.kit.clock,
        )
        try:
            executor.ended(plan, outcome)
        except (OSError, ZconsoleError) as error:
            self.notify(f"audit log: {error}", severity="warning", markup=False)
        self.notify(
            f"{plan.title}: {outcome.text}",
            timeout=15,
            markup=False,
            severity="information" if outcome.ok else "error",
        )

        if outcome.ok and plan.action in ("replace", "spare"):
            self.run_worker(self._offer_growth(), group="growth", exit_on_error=False)

    async def _offer_growth(self) -> None:
        """After the last disk of a vdev was replaced by a larger one: say what it could gain."""
        situation = await self.situation()
        for top in data_vdevs(situation.pool.root):
            key = key_of(situation.pool, top)
            plan = plan_expand(situation, key) if key else None
            if plan is not None and plan.refused is None and space_gained(situation, top):
                self.notify(
                    f"{plan.title}: {plan.consequences[0]}. Put the cursor on it, then A.",
                    timeout=20,
                    markup=False,
                )

    def _put_back(self, guid: str | None) -> None:
        """The scan has ended: put back what was set only for its time."""
        names = self.kit.control.due(guid) if guid and not self.denied else ()
        if names:
            done = self.kit.control.restore(self.kit.clock(), names)
            self.notify("\n".join(f"{entry.name} {entry.text}" for entry in done), markup=False)


def _said(event: Event) -> list[Said]:
    role = _ROLES.get(event.kind, "")
    words = {"begun": f"$ {event.text}", "done": "Done.", "skipped": f"Not needed: {event.text}"}
    said = [Said(words.get(event.kind, event.text), role)]
    if event.kind == "failed" and event.step is not None:
        said = [Said("Failed; nothing more was run.", role)]
    return [*said, Said(event.meaning, "warning")] if event.meaning else said
