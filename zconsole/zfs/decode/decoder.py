"""Decodes raw forms of any kind into samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Any

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import Event, HostLoad, Pool, Sample, SampleFailure
from zconsole.zfs.decode import libzfs, status_json
from zconsole.zfs.decode.builders import TOO_DEEP, check_size
from zconsole.zfs.decode.devices import Devices
from zconsole.zfs.decode.measurements import with_history, with_measurements
from zconsole.zfs.decode.values import is_time, mapping, number, word
from zconsole.zfs.raw import FORMS, Raw

_DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""Exceptions that a damaged form can cause; the decoders check values that would pass silently."""


def decode(raw: Raw, zone: tzinfo = UTC) -> tuple[Sample | SampleFailure, ...]:
    """Decode every pool in a raw form; libzfs is preferred to ``status``, and that to ``text``.

    ``zone`` is the time zone of dates in text, unless the raw form has ``utc_offset``.

    Raises NotUnderstoodError if there is no form or it is not ZFS output.
    """
    if not isinstance(raw, Mapping):
        raise NotUnderstoodError("not a sample: not a JSON object")
    if not is_time(raw.get("t")):
        raise NotUnderstoodError("not a sample: no time `t` in epoch seconds")
    try:
        if any(form in raw for form in FORMS):
            offset = raw.get("utc_offset")
            if isinstance(offset, (int, float)) and abs(offset) < 86400:
                zone = timezone(timedelta(seconds=offset))
            devices = Devices(raw)
            found = tuple(_sample(raw, devices, *pool) for pool in _pools(raw, devices, zone))
            check_size(sample.pool.root for sample in found)
            return found
        if "problem" in raw:
            return (_failure(raw),)
        raise NotUnderstoodError("not a sample: none of libzfs, status, text")
    except RecursionError:
        raise NotUnderstoodError(TOO_DEEP) from None
    except _DAMAGE as error:
        detail = " ".join(str(error).split())[:80]
        damage = f"{type(error).__name__} {detail}".strip()
        raise NotUnderstoodError(f"damaged ZFS output: {damage}") from error


def _pools(raw: Raw, devices: Devices, zone: tzinfo) -> Iterator[tuple[str, Pool, bool]]:
    """Yield the name of the best form, a pool in it, and whether its figures are exact."""
    # Undated output has no time at which zpool's rates and estimates could be computed.
    moment = None if raw.get("undated") is True else raw["t"]
    if "libzfs" in raw:
        config, message = mapping(raw["libzfs"], "libzfs"), mapping(raw.get("message"), "message")
        yield "libzfs", libzfs.pool_of_config(config, moment, devices, message), True
    elif "status" in raw:
        document = mapping(raw["status"], "status")
        for pool, exact in status_json.pools_of(document, moment, devices, zone):
            yield "json", pool, exact
    else:
        from zconsole.zfs.decode import text  # only here: slowest to load, often not needed

        for pool in text.pools_of(raw["text"], zone, devices):
            yield "text", pool, False


def _clock(raw: Raw) -> float:
    clock = _finite(raw.get("clock"))
    return float(raw["t"]) if clock is None else clock


def _finite(value: object) -> float | None:
    """Return a finite number; None for anything else."""
    usable = isinstance(value, (int, float)) and math.isfinite(value)
    return float(value) if usable else None  # type: ignore[arg-type]


def _sample(raw: Raw, devices: Devices, form: str, pool: Pool, exact: bool) -> Sample:
    return Sample(
        t=float(raw["t"]),
        clock=_clock(raw),
        source=str(raw.get("source", form)),
        exact=exact,
        pool=with_history(with_measurements(pool, raw), raw),
        kstat=word(raw.get("kstat")),
        host=_host(raw),
        version=word(raw.get("version")),
        events=tuple(
            Event(
                t=float(event["t"]),
                name=str(event.get("name", "")),
                text=str(event.get("text", "")),
                severity=str(event.get("severity", "info")),
                vdev=word(event.get("vdev")),
                origin=str(event.get("origin", "zpool")),
            )
            for event in raw.get("events") or ()
        ),
        tunables={
            str(name): int(value)
            for name, value in mapping(raw.get("tunables"), "tunables").items()
        },
        enclosures=devices.enclosures,
        dated=raw.get("undated") is not True,
        began=_finite(raw.get("began")),
        age=max(0.0, _finite(raw.get("age")) or 0.0),
    )


def _failure(raw: Raw) -> SampleFailure:
    blocks = Devices(raw).all_counters()
    return SampleFailure(
        pool=str(raw.get("pool", "")),
        t=float(raw["t"]),
        clock=_clock(raw),
        text=" ".join(str(raw["problem"]).split()),
        kstat=word(raw.get("kstat")),
        block={path: counters for path, counters in blocks.items() if counters is not None},
        gone=tuple(path for path, counters in blocks.items() if counters is None),
        host=_host(raw),
        absent=raw.get("absent") is True,
        began=_finite(raw.get("began")),
    )


def _host(raw: Raw) -> HostLoad | None:
    host: Mapping[str, Any] = mapping(raw.get("host"), "host")
    if not host:
        return None
    return HostLoad(
        cpu=_finite(host.get("cpu")),
        memory_total=number(host.get("memory_total")),
        memory_available=number(host.get("memory_available")),
        arc_bytes=number(host.get("arc_bytes")),
    )
