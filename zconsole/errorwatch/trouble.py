"""What is wrong with one device, and the signs that tell why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zconsole.units import duration


@dataclass(frozen=True, slots=True)
class SmartCounts:
    """A device's own counts, since it was made; None where it keeps none."""

    passed: bool | None = None
    """Its own overall verdict."""
    reallocated: int | None = None
    """Sectors it has given up (ATA attribute 5, SCSI grown defects)."""
    pending: int | None = None
    """Sectors it cannot read now (197)."""
    uncorrectable: int | None = None
    """(198; NVMe media errors)."""
    crc: int | None = None
    """Transfers that arrived damaged: the link, not the disk (199)."""

    def words(self) -> str:
        """``passed, 0 reallocated, 3 pending``, as far as it is known."""
        verdict = () if self.passed is None else ("passed" if self.passed else "FAILS",)
        counts = (
            (self.reallocated, "reallocated"),
            (self.pending, "pending"),
            (self.uncorrectable, "uncorrectable"),
            (self.crc, "CRC errors"),
        )
        return ", ".join((*verdict, *(f"{n} {word}" for n, word in counts if n is not None)))


@dataclass(frozen=True, slots=True)
class Deltas:
    """New errors of one device within ``seconds``."""

    read: int = 0
    write: int = 0
    cksum: int = 0
    slow: int = 0
    seconds: float = 3600.0

    @property
    def total(self) -> int:
        """Read, write and checksum errors together; slow I/Os are none."""
        return self.read + self.write + self.cksum


@dataclass(frozen=True, slots=True)
class Trouble:
    """One device with new errors, or that came and went."""

    key: str
    name: str
    deltas: Deltas
    last: float
    """Epoch seconds of the newest sign."""
    flaps: int = 0
    """How often it left and came back within the hour."""
    restarts: int = 0
    """How many scan restarts followed it."""
    cause: str = "unclear"
    """``cable`` (link, power, port), ``disk`` or ``unclear``."""
    text: str = ""
    """In one line: what was seen, and what it speaks for."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the signs speak for."""

    cause: str
    why: str


def judge(
    deltas: Deltas,
    flaps: int = 0,
    smart: SmartCounts | None = None,
    kernel: Sequence[str] = (),
) -> Judgement:
    """Cable or disk, by all signs together; unclear where they contradict or say too little.

    A link that is bad damages transfers (CRC counts, checksum errors) and lets devices vanish and
    come back; a disk that is bad has sectors it cannot read, and grows slow.
    """
    link, medium = _link_signs(deltas, flaps, smart, kernel), _disk_signs(deltas, smart, kernel)
    if link and (not medium or len(link) > len(medium) + 1):
        return Judgement("cable", "; ".join(link))
    if medium and (not link or len(medium) > len(link) + 1):
        return Judgement("disk", "; ".join(medium))
    return Judgement("unclear", "; ".join((*link, *medium)))


def _link_signs(
    deltas: Deltas, flaps: int, smart: SmartCounts | None, kernel: Sequence[str]
) -> list[str]:
    found = []
    if flaps:
        found.append("it leaves and comes back" if flaps > 1 else "it left and came back")
    if smart is not None and smart.crc:
        found.append(f"{smart.crc} CRC errors on its link")
    if deltas.cksum > 3 * max(1, deltas.read) and not (smart and (smart.pending or 0)):
        found.append("what it returns without an error is damaged")
    if any(_says(line, LINK_WORDS) for line in kernel):
        found.append("the kernel resets its link")
    return found


def _disk_signs(deltas: Deltas, smart: SmartCounts | None, kernel: Sequence[str]) -> list[str]:
    found = []
    if smart is not None:
        if smart.passed is False:
            found.append("SMART says it fails")
        if smart.pending:
            found.append(f"{smart.pending} sectors it cannot read")
        if smart.uncorrectable:
            found.append(f"{smart.uncorrectable} uncorrectable errors")
        if smart.reallocated:
            found.append(f"{smart.reallocated} sectors given up")
    if deltas.read > 3 * max(1, deltas.cksum):
        found.append("it reports read errors itself")
    if deltas.slow:
        found.append(f"{deltas.slow} slow I/Os")
    if any(_says(line, DISK_WORDS) for line in kernel):
        found.append("the kernel reports bad sectors")
    return found


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
"""libata, SCSI and USB messages about the way to a device (drivers/ata/libata-{core,eh}.c)."""

DISK_WORDS = ("medium error", "unrecovered read error", "critical medium", "unc ", "{ unc }")
"""… and about what is written on it (drivers/scsi/constants.c, block/blk-core.c)."""


def _says(line: str, words: Sequence[str]) -> bool:
    text = line.lower()
    return any(word in text for word in words)


def described(name: str, deltas: Deltas, flaps: int, restarts: int, found: Judgement) -> str:
    """``sdc: 40 checksum, 3 read in 1h00m, left 2 times, 2 restarts: more likely the cable …``."""
    counts = (
        (deltas.read, "read"),
        (deltas.write, "write"),
        (deltas.cksum, "checksum"),
        (deltas.slow, "slow"),
    )
    told = ", ".join(f"{count} {word}" for count, word in counts if count)
    parts = [f"{told} errors in {duration(deltas.seconds)}"] if told else []
    if flaps:
        parts.append(f"left and came back {flaps} times" if flaps > 1 else "left and came back")
    if restarts:
        parts.append(f"{restarts} scan restarts followed" if restarts > 1 else "a restart followed")
    words = {"cable": "its cable, port or power", "disk": "the disk"}
    if found.cause in words:
        parts.append(f"speaks for {words[found.cause]} ({found.why})")
    return f"{name}: {'; '.join(parts)}"
