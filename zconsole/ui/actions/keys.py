"""The keys that change something: uppercase, apart from those that only look."""

from __future__ import annotations

from zconsole.ui.keys import Key, Offer

ACTIONS = (
    Key(
        ("S",),
        "act('scans')",
        "start, pause, resume or stop a scrub; restart a resilver",
        "Actions",
        "Scrub",
    ),
    Key(("R",), "act('replace')", "replace the device at the cursor", "Actions", "Replace"),
    Key(
        ("T",),
        "act('tunables')",
        "tunables of scans and rebuilds: presets, set, put back",
        "Actions",
        "Tunables",
    ),
    Key(
        ("B",),
        "act('rebalance')",
        "rebalance: its jobs; choose directories, plan, run, watch, steer",
        "Actions",
        "Rebalance",
    ),
    Key(
        ("A",),
        "act('actions')",
        "everything that can be done with the row at the cursor",
        "Actions",
        "Actions",
    ),
)


def offers(denied: str) -> tuple[Offer, ...]:
    """The keys for the footer and the help; grey with the reason when nothing may be changed."""
    return tuple(Offer(key, not denied, denied) for key in ACTIONS)
