"""Work beside the painting."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from textual.app import App
from textual.dom import DOMNode
from textual.worker import Worker

Work = Callable[[], Coroutine[Any, Any, object]]


def begin(
    node: DOMNode, work: Work, group: str, *, exclusive: bool = False, exit_on_error: bool = True
) -> None:
    """Run it for as long as the console or screen is there.

    It is called only once it runs: a coroutine made for a console that is about to end, by a key
    behind the ``q``, would be complained of on the terminal as never awaited.
    """
    _: Worker[object] = node.run_worker(
        work,
        group=group,
        # Without one textual writes down the work with all it was given: a whole round of frames.
        description=group,
        exclusive=exclusive,
        exit_on_error=exit_on_error,
    )


def begin_next(app: App[Any], work: Work, group: str) -> None:
    """Run it unless the last one of its group is still under way."""
    if all(worker.is_finished for worker in app.workers if worker.group == group):
        begin(app, work, group)
