"""Background work of the console and its screens, as textual workers."""

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
    """Run work until it ends, or the console or screen does.

    The coroutine is created only when the worker starts: if a key pressed right after ``q`` created
    one that never runs, Python would print "never awaited" on the terminal.
    """
    _: Worker[object] = node.run_worker(
        work,
        group=group,
        # Otherwise textual keeps a description of the work with all its arguments: a whole round.
        description=group,
        exclusive=exclusive,
        exit_on_error=exit_on_error,
    )


def begin_next(app: App[Any], work: Work, group: str) -> None:
    """Run work unless earlier work of the same group is still running."""
    if all(worker.is_finished for worker in app.workers if worker.group == group):
        begin(app, work, group)
