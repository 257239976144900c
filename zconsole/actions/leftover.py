"""What a replacing or spare group means that is still there when nothing runs."""

from __future__ import annotations

from zconsole.pool.model import Vdev


def leftover(vdev: Vdev) -> str | None:
    """What a replacing or spare group that stays after the resilver means; None for others."""
    if vdev.kind == "replacing":
        return (
            "a replacing group stays when the resilver ended with errors, or a checkpoint existed:"
            " the old device may hold the only good copy of some block. Fix or remove the damaged"
            " files, then resilver again or scrub; detach the old device only if it is worthless."
        )
    if vdev.kind == "spare":
        return (
            "a spare stands in: replace the failed device to give the spare back, or detach the"
            " failed device to make the spare permanent."
        )
    return None
