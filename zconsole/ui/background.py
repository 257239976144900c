"""Work beside the painting."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

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
        work, group=group, exclusive=exclusive, exit_on_error=exit_on_error
    )
