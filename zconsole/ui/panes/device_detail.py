"""Details on a vdev, shown below its expanded row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from zconsole import units
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import Vdev
from zconsole.pool.volumes import volume_sentences
from zconsole.timeline.frame import Frame, Pairs, VdevRow
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.device_columns import note_words
from zconsole.ui.panes.device_graphs import LABEL, graphs
from zconsole.ui.panes.reasons import all_reasons, machine
from zconsole.ui.widgets.draw import Line, Span, beside, fit, indented, joined
from zconsole.ui.widgets.graph import sparkline
from zconsole.units import percent

_SHOWN_BUCKETS = 24
_DEEPEST = 8
"""Most cells of indent of the details."""
_FIRST = ("bay", "serial")
"""Facts that come first, as they identify the disk in one's hand."""


def detail_lines(
    row: VdevRow,
    frame: Frame,
    facts: Pairs,
    look: DisplayFormat,
    width: int,
    rows: int = 1,
    until: float | None = None,
) -> tuple[Line, ...]:
    """Return details on ``row``, ``width`` cells wide at most, with graphs of ``rows`` lines.

    There may be little room, so what is looked for most comes first: the disk's bay and serial,
    then its state and past. The graphs end at ``until`` (epoch seconds), without it now.
    """
    indent, room = min(row.depth + 2, _DEEPEST), detail_room(row, width)
    lasting = [(label, look.text(text)) for label, text in _lasting(row, frame, look) if text]
    now = [*_now(row, frame, look, room)]
    said = {label for label, _ in (*lasting, *now)}  # facts are as of when the row was opened
    lasting += [(look.text(label), look.text(text)) for label, text in facts if label not in said]
    first = [pair for pair in lasting if pair[0] in _FIRST]
    lines = [
        *_paired([*first, *now], room),
        *graphs(row, frame, look, room, rows, until),
        *_paired([pair for pair in lasting if pair not in first], room),
    ]
    if queues := row.vdev.queues:
        parts: list[Line] = [
            (Span(f"{name} ", "dim"), Span(f"{pending}+{active}"))
            for name, (pending, active) in queues.items()
            if pending or active
        ]
        shown = joined(parts or [(Span("all empty"),)], "  ", room - LABEL)
        lines.extend(indented(_label("queues"), shown))
    lines.extend(_histograms(row.vdev, look))
    return tuple(look.crop((Span(" " * indent), *line), width) for line in lines)


def detail_room(row: VdevRow, width: int) -> int:
    """Return the cells of a line of details in a list of ``width`` cells."""
    return max(20, width - min(row.depth + 2, _DEEPEST))


def _paired(pairs: Sequence[tuple[str, str]], room: int) -> Iterator[Line]:
    """Yield labels and values in full, wrapped: no other place on the screen shows the rest."""
    for label, value in pairs:
        yield from beside(_label(label), value, room)


def _lasting(row: VdevRow, frame: Frame, look: DisplayFormat) -> Iterator[tuple[str, str | None]]:
    """Yield identity, place and size of a vdev; for the root also facts on pool and machine."""
    vdev, disk = row.vdev, row.vdev.disk or LeafDisk()
    slot = " of ".join(filter(None, (disk.slot, disk.enclosure)))
    yield "name", vdev.name
    yield "path", vdev.path
    yield "guid", vdev.guid
    yield "devid", vdev.devid
    yield "location", vdev.phys_path
    yield "bay", f"{disk.bay} ({slot})" if disk.enclosure else disk.bay
    yield "port", disk.port
    yield "serial", disk.serial
    yield "WWN", disk.wwn
    yield "model", disk.model
    yield "temp", None if disk.temperature is None else f"{disk.temperature:.0f}C"
    if vdev.size_bytes is not None:
        used = "" if vdev.alloc_bytes is None else f", {look.size(vdev.alloc_bytes)} allocated"
        yield "size", f"{look.size(vdev.size_bytes)} ({vdev.size_bytes} bytes){used}"
    if vdev.fragmentation is not None:
        yield "free frag", percent(vdev.fragmentation)
    if vdev.ashift is not None:
        physical = vdev.physical_ashift
        worse = physical is not None and physical > vdev.ashift
        preference = f", the device prefers {2**physical}" if physical and worse else ""
        yield "sectors", f"{2**vdev.ashift} bytes (ashift {vdev.ashift}){preference}"
    if vdev.scan_processed:
        yield "repaired", look.size(vdev.scan_processed)
    if vdev.kind == "root":
        version = f", OpenZFS {frame.version}" if frame.version else ""
        yield "comment", frame.seen.comment
        yield "read as", f"{frame.sample.source}{version}" if frame.sample else ""
        yield "machine", machine(frame.host, look)
        told = volume_sentences(frame.balance.volumes, look.size)
        yield "volumes", "; ".join(told) or None
        label = "busiest"
        for each in frame.busiest_datasets or ():
            rates = f"reads {look.rate(each.read_rate)}, writes {look.rate(each.write_rate)}"
            yield label, f"{each.name}: {rates}"
            label = ""
        if not label:
            yield label, "logical I/O of mounted datasets and volumes, ARC hits included"


def _now(row: VdevRow, frame: Frame, look: DisplayFormat, room: int) -> Iterator[tuple[str, str]]:
    """Yield the present state: problems and since when, errors, and operations."""
    vdev, errors, rates = row.vdev, row.vdev.errors, row.rates
    if vdev.kind == "root":  # the header may only count the reasons
        reasons = all_reasons(frame, look, room - LABEL, len(frame.rows))
        yield from zip(("why", *[""] * len(reasons)), reasons, strict=False)
    yield from _troubles(row, frame, look)
    if note := note_words(row, look, frame.t):
        yield "note", note
    if vdev.sitting_out:
        way = "reads go around it: its data is rebuilt from parity. Writes and scrubs use it"
        yield "sit out", way
    elif vdev.autosit is not None:
        yield "sit out", f"autosit {'on: reads go around a slow disk' if vdev.autosit else 'off'}"
    if errors.read is not None or errors.total:
        counts = (errors.read or 0, errors.write or 0, errors.cksum or 0)
        yield "errors", "read {}  write {}  checksum {}".format(*counts)
    if rates.read_ops is not None or rates.write_ops is not None:
        asked = f"{rates.read_ops or 0:.0f} reads/s  {rates.write_ops or 0:.0f} writes/s"
        yield "operations", f"{asked}  latency {units.latency(rates.latency, '-')}"


def _troubles(row: VdevRow, frame: Frame, look: DisplayFormat) -> Iterator[tuple[str, str]]:
    """Yield new errors and flaps of the last hour, when the last was, and the likely cause."""
    found = next((trouble for trouble in frame.troubles if trouble.key == row.key), None)
    is_spare = row.vdev.vclass == "spare"
    for spare in frame.spares:
        if row.vdev.name == (spare.name if is_spare else spare.device):
            yield "trouble", look.text(look.said(spare.text))
    if found is None:
        return
    said = look.text(found.text).removeprefix(f"{look.text(found.name)}: ")
    yield found.label, f"{said}; last {look.when(found.last, frame.t)}"
    if found.signs is not None and found.signs.smart is not None:
        yield "SMART", found.signs.smart.words()


def _label(text: str) -> Span:
    return Span(fit(text, LABEL), "dim")


def _histograms(vdev: Vdev, look: DisplayFormat) -> list[Line]:
    """Return disk latency since the import: a column per power of two, slow at the right."""
    drawn = {
        label: vdev.histograms[name]
        for name, label in (("disk_r", "read latency"), ("disk_w", "write latency"))
        if any(vdev.histograms.get(name, ()))
    }
    if not drawn:
        return []
    low = min(next(i for i, n in enumerate(h) if n) for h in drawn.values())
    high = max(max(i for i, n in enumerate(h) if n) for h in drawn.values())
    # At least nine buckets: the axis below needs room for two labels.
    high = max(min(high, low + _SHOWN_BUCKETS - 1), low + 8)
    lines: list[Line] = []
    for label, buckets in drawn.items():
        shown = [*buckets, *[0] * high][low : high + 1]
        half, counts = sum(buckets) / 2, enumerate(accumulate(buckets))
        median = units.latency(_upper(next(i for i, seen in counts if seen >= half)))
        columns = Span(sparkline(shown, len(shown), max(buckets), look.glyphs), "spark")
        lines.append((_label(label), columns, Span(f"  half within {median}", "dim")))
    axis = fit(units.latency(_upper(low)), high - low + 1)
    end = units.latency(_upper(high))
    axis = axis[: max(0, len(axis) - len(end))] + end
    return [*lines, (Span(" " * LABEL), Span(axis, "dim"))]


def _upper(bucket: int) -> float:
    """Return the upper bound of a bucket in seconds: 2^(i+1) ns for bucket i (vdev_stat_ex)."""
    return float(2.0 ** (bucket + 1)) / 1e9
