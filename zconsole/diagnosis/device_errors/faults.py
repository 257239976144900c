"""What is wrong with one device, and the signs of its cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from zconsole.units import counted, duration, percent


class SmartCounts(NamedTuple):
    """A device's own lifetime counts; None where it keeps none."""

    passed: bool | None = None
    """Its own overall verdict."""
    reallocated: int | None = None
    """Sectors it has replaced (ATA attribute 5, SCSI grown defects)."""
    pending: int | None = None
    """Sectors it cannot read now (197)."""
    uncorrectable: int | None = None
    """(198; NVMe media errors)."""
    crc: int | None = None
    """Transfers that arrived damaged: the link, not the disk (199)."""
    wear: float | None = None
    """Share of the writes that flash was built for, 1 and above is worn out."""
    spare: float | None = None
    """Share of its spare blocks that flash has left."""
    temperature: float | None = None
    """Degrees Celsius."""

    def words(self) -> str:
        """``passed, 0 reallocated, 3 pending``, as far as it is known."""
        verdict = () if self.passed is None else ("passed" if self.passed else "FAILS",)
        counts = (
            (self.reallocated, "reallocated"),
            (self.pending, "pending"),
            (self.uncorrectable, "uncorrectable"),
            (self.crc, "CRC errors"),
        )
        shares = ((self.wear, "worn"), (self.spare, "of its spare blocks left"))
        return ", ".join(
            (
                *verdict,
                *(f"{n} {word}" for n, word in counts if n is not None),
                *(f"{percent(share)} {word}" for share, word in shares if share is not None),
            )
        )


class Deltas(NamedTuple):
    """New errors of one device, which fell within ``seconds``."""

    read: int = 0
    write: int = 0
    cksum: int = 0
    slow: int = 0
    seconds: float = 3600.0
    is_shared: bool = False
    """Whether the checksum errors tell nothing of this device: its siblings have as many, as where
    no copy of a block is good, or it was being filled and never given the data."""

    @property
    def total(self) -> int:
        """Read, write and checksum errors together; slow I/Os are not errors."""
        return self.read + self.write + self.cksum


class ProbeResults(NamedTuple):
    """What the device and the kernel report."""

    smart: SmartCounts | None = None
    kernel: tuple[str, ...] = ()
    """The kernel's messages about it within the hour, newest last."""
    before: SmartCounts | None = None
    """Its counts when first asked: only counts that grew since are new."""


class DeviceFault(NamedTuple):
    """One device with new errors, or that disconnected."""

    key: str
    name: str
    deltas: Deltas
    last: float
    """Epoch seconds of the newest sign."""
    flaps: int = 0
    """How often it disconnected and returned within the hour."""
    restarts: int = 0
    """How many scan restarts followed it."""
    copied_to: tuple[str, ...] = ()
    """The devices to which a rebuild may have copied its damaged data, by name."""
    cause: str = "unclear"
    """``cable`` (link, power, port), ``disk`` or ``unclear``."""
    text: str = ""
    """In one line: the likely cause, and what was observed."""
    gone: bool = False
    """Whether it is still disconnected."""
    signs: ProbeResults | None = None
    """What the device and the kernel reported; None if not probed."""


def judge(
    deltas: Deltas, flaps: int = 0, signs: ProbeResults | None = None
) -> tuple[str, tuple[str, ...]]:
    """Cable or disk, and the signs; unclear where they contradict each other or are too few.

    A bad link damages transfers (CRC counts, checksum errors) and makes devices disconnect and
    return; a bad disk has unreadable sectors and becomes slow. Counts that grow while it is
    watched weigh twice as much as lifetime counts.
    """
    signs = signs or ProbeResults()
    link, medium = list(_link_signs(deltas, flaps, signs)), list(_disk_signs(deltas, signs))
    if medium and deltas.slow:  # slow I/Os alone may come from load, link or disk
        medium.append(_Sign(counted(deltas.slow, "slow I/O")))
    for cause, own, other in (("cable", link, medium), ("disk", medium, link)):
        if own and (not other or _weight(own) > _weight(other) + 1):
            return cause, tuple(sign.words for sign in own)
    return "unclear", tuple(sign.words for sign in (*link, *medium))


class _Sign(NamedTuple):
    """What speaks for a cause."""

    words: str
    weight: int = 1


def _weight(signs: Sequence[_Sign]) -> int:
    return sum(sign.weight for sign in signs)


FAR_MORE = 3
"""Times as many errors of one kind as of the other that tell a link from a disk: a damaged transfer
fails its checksum, an unreadable sector is an error of the read."""


def _link_signs(deltas: Deltas, flaps: int, signs: ProbeResults) -> Iterator[_Sign]:
    if flaps:
        yield _Sign(returned(flaps))
    yield from _counted(signs, "crc", "CRC errors on its link")
    lone = deltas.cksum > FAR_MORE * max(1, deltas.read) and not deltas.is_shared
    if lone and not (signs.smart and signs.smart.pending):
        yield _Sign("it returns damaged data without an error")
    if _says(signs.kernel, LINK_WORDS):
        yield _Sign("the kernel resets its link")


def _disk_signs(deltas: Deltas, signs: ProbeResults) -> Iterator[_Sign]:
    if signs.smart is not None and signs.smart.passed is False:
        yield _Sign("SMART reports a failing disk")
    yield from _counted(signs, "pending", "unreadable sectors")
    yield from _counted(signs, "uncorrectable", "uncorrectable errors")
    yield from _counted(signs, "reallocated", "reallocated sectors")
    if deltas.read > FAR_MORE * max(1, deltas.cksum):
        yield _Sign("the disk itself reports read errors")
    if _says(signs.kernel, DISK_WORDS):
        yield _Sign("the kernel reports bad sectors")


def _counted(signs: ProbeResults, name: str, words: str) -> Iterator[_Sign]:
    """A count of SMART above 0, and whether it grows."""
    now, before = getattr(signs.smart, name, None), getattr(signs.before, name, None)
    if now and before is not None and now > before:
        yield _Sign(f"{now} {words}, {now - before} new", weight=2)
    elif now:
        yield _Sign(f"{now} {words}")


LINK_WORDS = (
    "link is slow",
    "hard resetting link",
    "softreset failed",
    "sata link down",
    "icrc",
    "badcrc",
    "interface fatal error",
    "transport error",
    "device offlined",
    "link down",
    "usb disconnect",
)
"""libata, SCSI and USB messages about the link to a device (drivers/ata/libata-{core,eh}.c)."""

DISK_WORDS = ("medium error", "unrecovered read error", "critical medium", "unc ", "{ unc }")
"""Kernel messages about a bad medium (drivers/scsi/constants.c, block/blk-core.c)."""


def _says(lines: Sequence[str], words: Sequence[str]) -> bool:
    return any(word in line.lower() for line in lines for word in words)


SUSPECTS = {
    "cable": "likely cable, port or power",
    "disk": "likely the disk itself",
    "unclear": "cable or disk: unclear",
}


def returned(flaps: int) -> str:
    """How often a device disconnected, in words."""
    return f"disconnected and returned {flaps} times" if flaps > 1 else "disconnected, returned"


def judged(fault: DeviceFault, signs: ProbeResults | None = None) -> DeviceFault:
    """The fault with its likely cause and its text, from the counts and the probe results.

    The text: ``sdc: likely cable, port or power; 40 checksum errors in 1h00m; the scan
    restarted``. What was counted is not repeated as a sign.
    """
    cause, found = judge(fault.deltas, fault.flaps, signs)
    parts = list(_counts(fault))
    more = [sign for sign in found if sign not in parts]
    if found:
        parts.insert(0, SUSPECTS[cause])
    text = f"{fault.name}: {'; '.join(parts)}" + (f" ({'; '.join(more)})" if more else "")
    return fault._replace(cause=cause, text=text, signs=signs)


def _counts(fault: DeviceFault) -> Iterator[str]:
    deltas, flaps = fault.deltas, fault.flaps
    counts = ((deltas.read, "read"), (deltas.write, "write"), (deltas.cksum, "checksum"))
    if errors := ", ".join(f"{count} {word}" for count, word in counts if count):
        noun = "error" if sum(count for count, _ in counts) == 1 else "errors"
        yield f"{errors} {noun} in {duration(deltas.seconds)}"
    if deltas.slow:
        yield counted(deltas.slow, "slow I/O")
    if flaps:
        yield returned(flaps)
    if fault.gone:
        yield "disconnected again" if flaps else "disconnected"
    if fault.copied_to:
        yield f"the rebuild may have copied damaged data to {', '.join(fault.copied_to)}"
    if restarts := fault.restarts:
        yield f"the scan restarted {restarts} times" if restarts > 1 else "the scan restarted"
