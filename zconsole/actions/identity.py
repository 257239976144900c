"""Whether a pool or a device is still the one that was confirmed, whatever its name says."""

from __future__ import annotations

from collections.abc import Mapping

from zconsole.actions.candidates import spares
from zconsole.actions.device import Device
from zconsole.actions.plan import Precondition, Situation
from zconsole.units import size


def same_device(s: Situation, path: str) -> Precondition:
    """The device that ``path`` names is the one it names in ``s``.

    A path is only a place: another disk in the same bay, or a restart of udev, gives it a new
    device. What the kernel and udev tell apart devices by is compared, where it was known.
    """
    spare = spares(s.pool).get(path)
    if spare is not None and spare.guid:
        return _same_spare(path, spare.guid)
    known = _known(s.facts.device(path))
    words = ", ".join(f"{name} {value}" for name, value in known.items())
    text = f"{path} is the same device: {words}" if known else _unknown(path)
    if known and not known.keys() & {"serial", "WWN"}:
        text += "; its serial number is unknown, so another disk of this size isn't noticed"

    def _check(now: Situation) -> str | None:
        found = _known(now.facts.device(path))
        changed = [
            f"{name} {found.get(name, 'unknown')}, not {value}"
            for name, value in known.items()
            if found.get(name) != value
        ]
        if not changed:
            return None
        if now.facts.device(path) is None:
            return f"{path} is no longer there; choose the device again"
        return f"{path} is another device now: {'; '.join(changed)}; choose the device again"

    return Precondition(text, _check)


def _same_spare(path: str, guid: str) -> Precondition:
    def _check(now: Situation) -> str | None:
        spare = spares(now.pool).get(path)
        if spare is not None and spare.guid == guid:
            return None
        return f"{path} is no longer the free spare that was chosen; choose the device again"

    return Precondition(f"{path} is the same free spare: GUID {guid}", _check)


def _known(device: Device | None) -> Mapping[str, str]:
    """What tells a device from others, as far as the kernel and udev know it."""
    if device is None:
        return {}
    found = {
        "serial": device.serial,
        "WWN": device.wwn,
        "model": device.model,
        "size": "" if device.size is None else f"{size(device.size)} ({device.size} bytes)",
    }
    return {name: value for name, value in found.items() if value}


def _unknown(path: str) -> str:
    return f"{path}: no serial number, WWN, model or size is known, so a swapped disk isn't noticed"
