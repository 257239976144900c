"""Whether a pool or a device is still the one that was confirmed, whatever its name says."""

from __future__ import annotations

from collections.abc import Mapping

from zconsole.actions.candidates import spares
from zconsole.actions.device import Device
from zconsole.actions.plan import Precondition, Situation
from zconsole.units import size


def same_device(s: Situation, path: str) -> Precondition:
    """The device that ``path`` names is the one it names in ``s``.

    A path is only a place: another disk in the same bay, or a rename by udev, gives it a new
    device. What the kernel and udev tell devices apart by is compared, where it was known; of a
    hot spare its GUID too. A disk swapped between the fresh look and zpool's own opening of the
    path, the time in which the audit log is written, is not noticed.
    """
    known = _known(s, path)

    def _check(now: Situation) -> str | None:
        found = _known(now, path)
        changed = [
            f"{name} {found.get(name, 'unknown')}, not {value}"
            for name, value in known.items()
            if found.get(name) != value
        ]
        if not changed:
            return None
        if not found:
            return f"{path} is no longer there; choose the device again"
        return f"{path} is another device now: {'; '.join(changed)}; choose the device again"

    return Precondition(_text(path, known), _check)


def _text(path: str, known: Mapping[str, str]) -> str:
    """What the device is known by, and what it isn't."""
    if not known:
        return (
            f"{path}: no serial number, WWN, model or size is known, so a swapped disk isn't"
            " noticed"
        )
    words = ", ".join(f"{name} {value}" for name, value in known.items())
    doubt = "; its serial number is unknown, so another disk of this size isn't noticed"
    named = known.keys() & {"serial", "WWN", "spare"}
    return f"{path} is the same device: {words}{'' if named else doubt}"


def _known(s: Situation, path: str) -> Mapping[str, str]:
    """What tells the device from others, as far as the pool, the kernel and udev know it."""
    device, spare = s.facts.device(path) or Device(path), spares(s.pool).get(path)
    found = {
        "serial": device.serial,
        "WWN": device.wwn,
        "model": device.model,
        "size": "" if device.size is None else f"{size(device.size)} ({device.size} bytes)",
        "spare": "" if spare is None or not spare.guid else f"GUID {spare.guid}",
    }
    return {name: value for name, value in found.items() if value}
