"""The rate at which background work can proceed through a set of leaves, and what limits it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from zconsole.sim.disk import Flow, Leaf
from zconsole.sim.state import Host

MIB = float(1 << 20)
FEW = 1e-9


@dataclass(slots=True)
class DiskShare:
    """One leaf's part in a job: ``share`` bytes of I/O for each byte of progress."""

    leaf: Leaf
    share: float
    kind: str
    """Queue class of its I/O."""
    write: bool
    size: float
    run: float
    queue: float
    most: float = float("inf")
    """Requests in flight beyond which it gets no faster: more only add latency."""
    media: float = 0.0
    """Device seconds per request at present."""
    ceiling: float = 0.0
    """Bytes/s of progress that this leaf alone would allow."""

    def capacity(self) -> float:
        """Return the bytes/s of this I/O that the leaf can do now; sets ``media``."""
        queue = min(self.queue, self.most)
        self.media = self.leaf.media_time(self.size, self.run, queue, self.write)
        return self.leaf.capacity(self.size, self.media, queue)


@dataclass(slots=True)
class DiskJob:
    """Work on one top-level vdev; ``solve`` sets its rate and the cause that limits it."""

    key: int
    parts: list[DiskShare]
    clamp: float = float("inf")
    """Bytes/s allowed by something other than the disks."""
    clamp_cause: str = ""
    duty: float = 1.0
    """Share of the time in which the work is allowed to run."""
    busy: float = 1.0
    """Highest ``duty`` that still speeds up a slow disk: it drains its queue in the pauses."""
    weight: float = 1.0
    """Bytes checksummed or reconstructed per byte of progress."""
    rate: float = 0.0
    """Bytes/s of progress, averaged over running and pausing."""
    cause: str = ""
    slowest: DiskShare | None = None


def request_size(run: float, block: float) -> float:
    """Return bytes per request after aggregation in the queue (zfs_vdev_aggregation_limit)."""
    return max(4096.0, min(MIB, run, max(block, run * 0.5)))


def solve(jobs: Iterable[DiskJob], host: Host) -> None:
    """Set ``rate`` and ``cause`` of every job: disks first, then shared links, then the CPU."""
    running = [job for job in jobs if job.parts]
    for job in running:
        _by_disks(job)
    for name, capacity in host.buses.items():
        _by_bus(running, name, capacity)
    # All jobs share the processors, which checksum ``throughput`` bytes/s at most.
    load = sum(job.rate * job.weight for job in running)
    host.cpu = min(0.98, host.cpu + 0.94 * load / host.throughput)
    if load > host.throughput:
        for job in running:
            job.rate *= host.throughput / load
            job.cause = "cpu"


def _by_disks(job: DiskJob) -> None:
    inverse: dict[int, float] = {}
    for part in job.parts:
        guid = part.leaf.guid
        inverse[guid] = inverse.get(guid, 0.0) + part.share / part.capacity()
    for part in job.parts:
        part.ceiling = 1.0 / max(inverse[part.leaf.guid], FEW / 1e9)
    job.slowest = min(job.parts, key=lambda part: part.ceiling)
    job.cause = _disk_cause(job, job.slowest)
    job.rate = job.slowest.ceiling * min(job.duty, job.busy if job.cause == "straggler" else 1.0)
    if job.duty < 0.7 and job.cause not in ("straggler", "smr"):
        job.cause = "foreground"
    if job.clamp < job.rate:
        job.rate, job.cause = job.clamp, job.clamp_cause


def _disk_cause(job: DiskJob, slowest: DiskShare) -> str:
    """Return why the slowest leaf is slow, in one word: the cause that diagnosis should find."""
    leaf = slowest.leaf
    others = sorted(part.ceiling for part in job.parts if not part.write)
    middle = others[len(others) // 2] if others else slowest.ceiling
    # A source that is slower than 70 % of the median stands out.
    if not slowest.write and len(others) > 2 and slowest.ceiling < 0.7 * middle:
        return "straggler"
    if leaf.used > 0.25:
        return "foreground"
    if slowest.write:
        if leaf.collapsed:
            return "smr"
        # The new disk is at its limit, or gets too few requests.
        waiting = slowest.queue / (slowest.media + leaf.model.latency)
        return "throttle" if waiting < 0.8 / slowest.media else "new-disk"
    seeks = min(1.0, slowest.size / slowest.run) * leaf.model.seek
    transfer = slowest.size / leaf.model.bandwidth(leaf.position)
    return "random" if seeks > transfer else "disks"


def _by_bus(jobs: list[DiskJob], name: str, capacity: float) -> None:
    used = 0.0
    for job in jobs:
        used += job.rate * sum(part.share for part in job.parts if part.leaf.bus == name)
    if used <= capacity:
        return
    for job in jobs:
        if any(part.leaf.bus == name for part in job.parts):
            job.rate *= capacity / used
            job.cause = "bus"
            # Requests stay in flight until the link accepts them, so their disks are busy
            # meanwhile.
            for part in job.parts:
                ops = job.rate * part.share / part.size
                if part.leaf.bus == name and ops > FEW:
                    part.media = max(part.media, (1.0 - part.leaf.used) / ops)


def emit(job: DiskJob, rate: float, in_flight_limit: float) -> None:
    """Turn ``rate`` bytes/s of progress into I/O of the leaves."""
    for part in job.parts:
        ops = rate * part.share / part.size
        if ops <= FEW:
            continue
        pending = in_flight_limit / part.size * 0.9 if part is job.slowest else 0.4 * part.queue
        part.leaf.flows.append(
            Flow(part.kind, part.write, ops, part.size, part.media, part.queue, pending)
        )
