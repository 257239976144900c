"""What every flow of actions works with; it knows neither the console nor the controller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from zconsole.actions.backend import ActionBackend
from zconsole.monitor.frame import Frame
from zconsole.ui.actions.follow_up import FollowUp
from zconsole.ui.actions.quit_warnings import UnderWay
from zconsole.ui.actions.tuned import TunedWatch
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.themed_app import ThemedApp


@dataclass(frozen=True, slots=True)
class FlowContext:
    """The app that shows a flow's screens, and what acts on the pools it shows."""

    app: ThemedApp
    backend: ActionBackend
    watch: FollowUp
    tuned: TunedWatch
    why_denied: Callable[[], str]
    under_way: list[UnderWay] = field(default_factory=list)
    """Plans being carried out now."""

    @property
    def denied(self) -> str:
        """Why nothing may be changed now; empty when it may."""
        return self.why_denied()

    @property
    def frame(self) -> Frame | None:
        """The newest frame of the pool on show."""
        return self.app.view_state.frame

    @property
    def look(self) -> DisplayFormat:
        """How sizes and times are written now."""
        return self.app.view_state.look

    def complain(self, problem: Exception | str) -> None:
        """Show what went wrong, as it is."""
        self.app.notify(str(problem), severity="error", markup=False)
