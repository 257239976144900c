"""The lines under an expanded row: everything known about one vdev."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from zconsole import units
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import Vdev
from zconsole.timeline.frame import Frame, Pairs, VdevRow
from zconsole.ui.display_format import DisplayFormat, percent
from zconsole.ui.panes.device_cells import note_words
from zconsole.ui.panes.device_graphs import LABEL, graphs
from zconsole.ui.panes.reasons import all_reasons
from zconsole.ui.panes.scan_parts import machine
from zconsole.ui.widgets.draw import Line, Span, beside, fit, hung, joined
from zconsole.ui.widgets.graph import sparkline

_SHOWN_BUCKETS = 24
_FIRST = ("bay", "serial")
"""What one looks for with the disk in hand."""


def detail_lines(
    row: VdevRow,
    frame: Frame,
    facts: Pairs,
    look: DisplayFormat,
    width: int,
    rows: int = 1,
    until: float | None = None,
) -> tuple[Line, ...]:
    """The detail of ``row``, every line within ``width`` cells; its graphs ``rows`` lines high.

    Where the disk is and which it is comes first, then how it is and was: that is what is looked
    for, and there may be little room. The graphs end at ``until``, without it now.
    """
    indent, room = _indent(row), detail_room(row, width)
    now = [
        *_reasons(row, frame, look, room),
        *_troubles(row, frame, look),
        *_condition(row, frame, look),
    ]
    lasting = [*_identity(row.vdev, look), *_sizes(row.vdev, look)]
    lasting += _pool(frame, look) if row.vdev.kind == "root" else []
    said = {label for label, _ in lasting}
    lasting += [(look.text(label), look.text(text)) for label, text in facts if label not in said]
    first = [pair for pair in lasting if pair[0] in _FIRST]
    lines = [
        *_paired([*first, *now], room),
        *graphs(row, frame, look, room, rows, until),
        *_paired([pair for pair in lasting if pair not in first], room),
    ]
    if row.vdev.queues:
        lines.extend(_queues(row.vdev.queues, room))
    lines.extend(_histograms(row.vdev, look))
    made = ((Span(" " * indent), *line) for line in lines)
    return tuple(look.crop(line, width) for line in made)


def _indent(row: VdevRow) -> int:
    return min(row.depth + 2, 8)


def detail_room(row: VdevRow, width: int) -> int:
    """The cells of the lines of its detail in a list of ``width``."""
    return max(20, width - _indent(row))


def _paired(pairs: Sequence[tuple[str, str]], room: int) -> Iterator[Line]:
    """Each whole, on as many lines as it takes: nothing else on the screen shows the rest."""
    for label, value in pairs:
        yield from beside(_label(label), value, room)


def _identity(vdev: Vdev, look: DisplayFormat) -> list[tuple[str, str]]:
    named = (
        ("name", vdev.name),
        ("path", vdev.path),
        ("guid", vdev.guid),
        ("devid", vdev.devid),
        ("location", vdev.phys_path),
        *_disk(vdev.disk or LeafDisk()),
    )
    return [(label, look.text(value)) for label, value in named if value]


def _disk(disk: LeafDisk) -> Iterator[tuple[str, str]]:
    """Where its disk sits, and which it is."""
    slot = " of ".join(filter(None, (disk.slot, disk.enclosure)))
    yield "bay", f"{disk.bay} ({slot})" if disk.enclosure else disk.bay
    yield "port", disk.port
    yield "serial", disk.serial
    yield "WWN", disk.wwn
    yield "model", disk.model
    if disk.temperature is not None:
        yield "temp", f"{disk.temperature:.0f}C"


def _sizes(vdev: Vdev, look: DisplayFormat) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    if vdev.size_bytes is not None:
        used = "" if vdev.alloc_bytes is None else f", {look.size(vdev.alloc_bytes)} allocated"
        pairs.append(("size", f"{look.size(vdev.size_bytes)} ({vdev.size_bytes} bytes){used}"))
    if vdev.fragmentation is not None:
        pairs.append(("free frag", percent(vdev.fragmentation, 0)))
    if vdev.ashift is not None:
        physical = vdev.physical_ashift
        worse = physical is not None and physical > vdev.ashift
        preference = f", the device prefers {2**physical}" if physical and worse else ""
        pairs.append(("sectors", f"{2**vdev.ashift} bytes (ashift {vdev.ashift}){preference}"))
    if vdev.scan_processed:
        pairs.append(("repaired", look.size(vdev.scan_processed)))
    return pairs


def _condition(row: VdevRow, frame: Frame, look: DisplayFormat) -> list[tuple[str, str]]:
    errors = row.vdev.errors
    pairs: list[tuple[str, str]] = []
    if note := note_words(row, look, frame.t):
        pairs.append(("note", note))
    if sits := _sits_out(row.vdev):
        pairs.append(("sit out", sits))
    if errors.read is not None or errors.total:
        pairs.append(
            (
                "errors",
                f"read {errors.read or 0}  write {errors.write or 0}  checksum {errors.cksum or 0}",
            )
        )
    rates = row.rates
    if rates.read_ops is not None or rates.write_ops is not None:
        pairs.append(
            (
                "operations",
                f"{rates.read_ops or 0:.0f} reads/s  {rates.write_ops or 0:.0f} writes/s"
                f"  latency {units.latency(rates.latency, '-')}",
            )
        )
    return pairs


def _reasons(row: VdevRow, frame: Frame, look: DisplayFormat, room: int) -> list[tuple[str, str]]:
    """Of the pool's own row all reasons of its state: its header may only count them."""
    if row.vdev.kind != "root":
        return []
    reasons = all_reasons(frame, look, room - LABEL, len(frame.rows))
    labels = ("why", *[""] * len(reasons))
    return list(zip(labels, reasons, strict=False))


def _sits_out(vdev: Vdev) -> str:
    """Whether reads go around it, or around slow disks below it; "" where nothing says so."""
    if vdev.sitting_out:
        return "reads go around it: its data is rebuilt from parity. Writes and scrubs use it"
    if vdev.autosit is None:
        return ""
    return f"autosit {'on: reads go around a slow disk' if vdev.autosit else 'off'}"


def _troubles(row: VdevRow, frame: Frame, look: DisplayFormat) -> list[tuple[str, str]]:
    """New errors and flaps of the last hour, when the last of them was, and what they speak for."""
    found = next((trouble for trouble in frame.troubles if trouble.key == row.key), None)
    if found is None:
        spares = frame.spares if row.vdev.vclass == "spare" else ()
        return [("trouble", look.text(s.text)) for s in spares if s.name == row.vdev.name]
    said = look.text(found.text).removeprefix(f"{look.text(found.name)}: ")
    said += f"; last {look.when(found.last, frame.t)}"
    pairs = [("trouble", said)]
    if found.signs is not None and found.signs.smart is not None:
        pairs.append(("SMART now", found.signs.smart.words()))
    return pairs


def _pool(frame: Frame, look: DisplayFormat) -> list[tuple[str, str]]:
    """What is known of the pool as a whole and of its machine."""
    version = f", OpenZFS {frame.version}" if frame.version else ""
    facts = (
        ("comment", frame.seen.comment),
        ("read as", f"{frame.sample.source}{version}" if frame.sample else ""),
        ("machine", machine(frame.host, look)),
    )
    return [(label, look.text(text)) for label, text in facts if text]


def _queues(queues: Mapping[str, tuple[int, int]], room: int) -> tuple[Line, ...]:
    parts: list[Line] = [
        (Span(f"{name} ", "dim"), Span(f"{pending}+{active}"))
        for name, (pending, active) in queues.items()
        if pending or active
    ]
    return hung(_label("queues"), joined(parts or [(Span("all empty"),)], "  ", room - LABEL))


def _label(text: str) -> Span:
    return Span(fit(text, LABEL), "dim")


def _histograms(vdev: Vdev, look: DisplayFormat) -> list[Line]:
    """Disk latency since the pool was opened, a column a power of two, slow to the right."""
    drawn = {
        label: vdev.histograms[name]
        for name, label in (("disk_r", "read latency"), ("disk_w", "write latency"))
        if any(vdev.histograms.get(name, ()))
    }
    if not drawn:
        return []
    low = min(next(i for i, n in enumerate(h) if n) for h in drawn.values())
    high = max(max(i for i, n in enumerate(h) if n) for h in drawn.values())
    high = max(min(high, low + _SHOWN_BUCKETS - 1), low + 8)
    lines = [
        (
            _label(label),
            Span(_columns(buckets, low, high, look), "spark"),
            Span(f"  half within {units.latency(_median(buckets))}", "dim"),
        )
        for label, buckets in drawn.items()
    ]
    axis = fit(units.latency(_upper(low)), high - low + 1)
    end = units.latency(_upper(high))
    axis = axis[: max(0, len(axis) - len(end))] + end
    return [*lines, (Span(" " * LABEL), Span(axis, "dim"))]


def _upper(bucket: int) -> float:
    """Seconds at the top of a bucket: bucket i holds waits up to 2^(i+1) ns (vdev_stat_ex)."""
    return float(2.0 ** (bucket + 1)) / 1e9


def _columns(buckets: Sequence[int], low: int, high: int, look: DisplayFormat) -> str:
    shown = [*buckets, *[0] * high][low : high + 1]
    return sparkline(shown, len(shown), max(buckets), look.glyphs)


def _median(buckets: Sequence[int]) -> float:
    half = sum(buckets) / 2
    return _upper(next(i for i, seen in enumerate(accumulate(buckets)) if seen >= half))
