"""What a round has to say besides its frames: alerts and notes, as messages and by the bell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.notifications import SeverityLevel

from zconsole.system.printable import clean
from zconsole.timeline.alerts.rules import Alert
from zconsole.timeline.feed import Update

SHOWN = 30.0
"""Seconds a message stays."""
_SEVERITIES: dict[str, SeverityLevel] = {"error": "error", "warning": "warning"}


def tell(app: App[Any], update: Update, hint: Callable[[Alert], str] = lambda _: "") -> None:
    """Show the alerts and notes of a round; ring and notify as its feed wants.

    ``hint`` says what can be done about an alert.
    """
    for alert in update.alerts:
        key = hint(alert)
        text = clean(f"{alert.pool}: {f'{alert.text}{key}' if key else alert.words}")
        severity = _SEVERITIES.get(alert.severity, "information")
        app.notify(text, severity=severity, timeout=SHOWN, markup=False)
    for note in update.notes:
        app.notify(clean(note), severity="warning", timeout=SHOWN, markup=False)
    driver = app._driver
    if update.ring and driver is not None:
        driver.write(update.ring)
        driver.flush()
