"""Script of the recording: the demo, the size of its terminal, and when each key is pressed."""

from __future__ import annotations

COLUMNS, ROWS = 100, 30
COMMAND = ("zconsole", "demo", "--speed", "120", "--interval", "3")
WARM_UP = 60.0
"""Seconds that run before the recording, so that there is a history to show."""
SECONDS = 26.0
"""The length of the recording."""

KEYS = (
    *((3.0 + step / 4, "j") for step in range(9)),
    (7.0, "enter"),
    (11.0, "enter"),
    (12.4, "R"),
    (13.8, "j"),
    (15.0, "enter"),
    (20.3, "escape"),
    (21.3, "escape"),
)
"""Keys, with the second of the recording at which each is pressed: to the slow disk, its detail and
back, then the plan to replace it and back.
"""

STILL = 6.8
"""The moment shown where animation is off."""
