"""The process that waits until lights of bays have been on for their time, then puts them back.

One for all lights of the machine, in a session of its own: it outlives the console that lit them.
It holds a lock while it runs. Run as ``python -m zconsole.hardware.light_holder``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from zconsole.errors import ZconsoleError
from zconsole.hardware.light import HOLDER, LitSlot, LocateLights
from zconsole.system.audit import audit_log
from zconsole.system.state_dir import try_lock

LOOK = 30.0
"""Seconds between two looks whether somebody else switched a light off."""


def main(argv: Sequence[str] | None = None) -> int:
    """Hold the lights of the machine until none is left; returns the exit code."""
    parser = argparse.ArgumentParser(prog="zconsole.hardware.light_holder", allow_abbrev=False)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--root", type=Path, required=True)
    args = parser.parse_args(argv)
    lock = try_lock(args.state / HOLDER)
    if lock is None:  # another one does it
        return 0
    log = audit_log(lambda: Path(args.state))
    hold(LocateLights(args.state, args.root, log=log), lock, time.sleep, time.time)
    log.settle()
    return 0


def hold(
    lights: LocateLights, lock: int, wait: Callable[[float], object], clock: Callable[[], float]
) -> None:
    """Tidy the lights whenever the time of one is over, and now and then; until none is left.

    ``wait`` pauses so many seconds. Where the records can't be read any more, those that were
    known put back what they found: losing the file must not leave a light on.
    """
    known: tuple[LitSlot, ...] = ()
    while True:
        try:
            known = lights.lit()  # first: an enclosure that hangs must not make it forget them
            lights.tidy()
            known = lights.lit()
            if lights.idle(lock):
                return
        except (OSError, ZconsoleError):
            known = lights.put_back_from_memory(known)
            if not known:
                return
        now = clock()
        ahead = [record.until - now for record in known if record.until > now]
        wait(min(LOOK, *ahead, LOOK))


if __name__ == "__main__":
    sys.exit(main())
