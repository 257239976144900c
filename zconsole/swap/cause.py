"""Why a device that may be swapped has errors: its cable and port, or the disk itself."""

from __future__ import annotations

import shlex

from zconsole.actions.target import Target
from zconsole.diagnosis.device_errors.faults import SUSPECTS, Deltas, ProbeResults, judge
from zconsole.pool.topology import FAILED
from zconsole.swap.view import MachineView


def cause_of(v: MachineView, target: Target) -> str:
    """cable, disk or unclear: as judged while it was watched, else by what is counted.

    What a device that failed counted by then may be of either; what SMART counts speaks for it,
    also where watching left the cause unclear.
    """
    fault = next((f for f in v.faults if f.key == target.key), None)
    if fault is not None and fault.cause != "unclear":
        return fault.cause
    errors, failed = target.vdev.errors, target.vdev.state in FAILED
    if fault is None and not errors.total and not failed:
        return "unclear"
    device = v.situation.facts.device(target.vdev.path or "")
    signs = ProbeResults(v.smart.get(device.path) if device else None)
    counted = Deltas(errors.read or 0, errors.write or 0, errors.cksum or 0)
    return judge(Deltas() if failed else counted, signs=signs)[0]


def cable_advice(v: MachineView, target: Target) -> str:
    """What to do before the disk is replaced; empty unless its cable is the likely cause."""
    if cause_of(v, target) != "cable":
        return ""
    name = target.argument if target.vdev.state in FAILED else target.name
    clear = shlex.join(("zpool", "clear", v.situation.pool.name, name))
    return (
        f"{SUSPECTS['cable']}: check the cable and port, then clear the errors ({clear});"
        " replace it if they come back"
    )
