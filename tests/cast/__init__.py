"""The animated picture of the README: a recorded run of the demo, and an SVG made from it.

``python -m tests.cast`` runs the demo in a terminal of its own, presses the keys of ``script.py``,
saves the output as ``tests/golden/demo.cast`` (asciinema's format) and draws
``tests/golden/demo.svg`` from it. ``python -m tests.cast --draw`` only draws. The demo runs in real
time: on a busy machine, record with ``nice -n -15``, or it answers keys late.
"""

from __future__ import annotations

from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden"
CAST = GOLDEN / "demo.cast"
PICTURE = GOLDEN / "demo.svg"
MOST = 300_000
"""Maximum size of the picture, in bytes."""
