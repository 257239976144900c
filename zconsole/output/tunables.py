"""Tunables as JSON and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from zconsole.tunables.control import Setting
from zconsole.tunables.holds import grouped, promise


def record(setting: Setting) -> dict[str, Any]:
    """Return one tunable as ``zconsole tunables list --json`` prints it.

    ``value`` is None if this kernel lacks it. ``affects`` is resilver, scrub, rebuild, scans,
    writes or everything; with ``running_scan`` also a scan that runs already. ``settable`` is False
    for one that zconsole never sets; ``note`` says why.

    ``set_by_us`` is the value that was set with zconsole, and ``original`` the one before; both
    None if it was not. ``held_by`` is what is to restore it: nobody if that is gone, None if the
    value is to stay. ``promise`` says as a sentence when it is restored.
    """
    tunable = setting.tunable
    return {
        "version": 1,
        "name": tunable.name,
        "value": setting.value,
        "default": setting.default,
        "unit": tunable.unit,
        "min": tunable.low,
        "max": tunable.high,
        "path": setting.path,
        "affects": tunable.affects,
        "running_scan": tunable.running_scan,
        "settable": not tunable.never,
        "set_by_us": setting.set_by_us,
        "original": setting.original,
        "held_by": setting.hold.holder if setting.hold else None,
        "promise": promise(setting.hold) if setting.hold else None,
        "note": "; ".join(notes(setting)),
        "meaning": tunable.meaning,
    }


def notes(setting: Setting) -> Iterator[str]:
    """Yield notes on a tunable, besides its meaning."""
    tunable = setting.tunable
    if tunable.never:
        yield f"never set: {tunable.never}"
    if tunable.note:
        yield tunable.note
    if setting.set_by_us is not None and not setting.ours:
        yield f"set to {tunable.exact(setting.set_by_us)} here; changed by someone else since"


def table(settings: Sequence[Setting]) -> Iterator[str]:
    """Yield a line for each tunable of this kernel: name, value, default, unit, meaning."""
    present = [s for s in settings if s.value is not None]
    width = max((len(s.tunable.name) for s in present), default=0)
    for setting in present:
        tunable = setting.tunable
        value, default = map(tunable.exact, (setting.value, setting.default))
        was = f" (was {tunable.exact(setting.original)})" if setting.ours else ""
        yield (
            f"{tunable.name:<{width}}  {value:>12}  default {default:>9}"
            f"  {tunable.unit:<6}  {tunable.meaning}{was}"
        )


def restore_lines(settings: Iterable[Setting]) -> Iterator[str]:
    """Yield the names of tunables that were set, grouped by how they will be restored."""
    holds = {each.tunable.name: each.hold for each in settings if each.hold is not None}
    for said, names in grouped(holds).items():
        yield f"{', '.join(names)}: {said}"
