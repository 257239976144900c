"""How good the estimates are on recordings, against zpool's own: ``python -m tests.bench.eta DIR``.

Every scan (function, vdev, start) that finished in a recording is judged by its samples between
5 % and 95 % of its elapsed time, without those while it was paused. The error of an estimate is
|eta - true| / max(eta, true), and 1 if there is none. During "measuring", the console shows zpool's
figure, so that is judged; there is no range then. Printed are, for each scan, the ratio of our mean
error to that of zpool's own estimate; then the geometric mean of these ratios, and that of the
moments at which an end is told, how often the true end was within the range, and its median width
as a share of the remaining time.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from statistics import fmean, median

from tests.records import replace
from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import Sample, SampleFailure, Scan
from zconsole.timeline.eta.estimate import MEASURING, Estimate
from zconsole.timeline.pool import PoolTimeline
from zconsole.zfs.decode import decode
from zconsole.zfs.sources.recording import NotRawError, raw_of

BAR_RATIO, BAR_WORSE, BAR_COVERED, BAR_EACH, BAR_WIDTH = 0.28, 0.02, 0.85, 0.5, 0.9
FIRST, LAST = 0.05, 0.95
ScanKey = tuple[str, str | None, float | None]
FORMS = ("libzfs", "status", "text")


@dataclass
class Judged:
    """The samples of one scan that are judged."""

    name: str
    scan: Scan
    ours: list[float] = field(default_factory=list)
    zpool: list[float] = field(default_factory=list)
    told: list[bool] = field(default_factory=list)
    """Whether an end of our own was told."""
    covered: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)

    def add(self, estimate: Estimate, zpool_eta: float | None, true: float) -> None:
        measuring = estimate.lacking == MEASURING
        self.ours.append(error(zpool_eta if measuring else estimate.eta, true))
        self.zpool.append(error(zpool_eta, true))
        self.told.append(not measuring)
        if measuring:
            return
        low, high = estimate.low, estimate.high
        self.covered.append(low is not None and high is not None and low <= true <= high)
        if low is not None and high is not None and true > 0:
            self.widths.append((high - low) / true)

    @property
    def ratio(self) -> float:
        return _ratio(self.ours, self.zpool)

    @property
    def told_ratio(self) -> float:
        """The ratio of the moments at which an end was told; 1 if there are none."""
        if not any(self.told):
            return 1.0
        return _ratio(*(list(compress(errors, self.told)) for errors in (self.ours, self.zpool)))


def _ratio(ours: Sequence[float], zpool: Sequence[float]) -> float:
    return max(fmean(ours), 1e-6) / max(fmean(zpool), 1e-6)


def error(eta: float | None, true: float) -> float:
    """Return the error of an estimate: 0 if exact, near 1 if wildly wrong, 1 if there is none."""
    if eta is None:
        return 1.0
    return abs(eta - true) / max(eta, true, 1e-9)


def judge(name: str, samples: Sequence[Sample | SampleFailure]) -> list[Judged]:
    """Return every finished scan in the samples of one pool, in the order in which they started."""
    ends = finished(
        s for sample in samples if isinstance(sample, Sample) for s in sample.pool.scans
    )
    timeline = PoolTimeline()
    found: dict[object, Judged] = {}
    for sample in samples:
        if isinstance(sample, SampleFailure):
            timeline.push_failure(sample)
            continue
        for view in timeline.push(sample).scans:
            end = ends.get(view.scan.key)
            if end is not None and view.scan.state == "running" and _counts(sample.t, end):
                judged = found.setdefault(end.key, Judged(name, end))
                judged.add(view.estimate, view.scan.zpool_eta, (end.end or 0.0) - sample.t)
    return list(found.values())


def finished(scans: Iterable[Scan]) -> dict[ScanKey, Scan]:
    """Return the finished scans, by the key they had while they ran.

    Text output shows no start for a finished scan, but how long it took.
    """
    seen = list(scans)
    ends: dict[ScanKey, Scan] = {}
    for scan in seen:
        if scan.state != "finished" or scan.end is None:
            continue
        start = scan.start
        if start is None and scan.duration is not None:
            start = min(
                (s.start for s in seen if s.start and s.key[:2] == scan.key[:2]),
                key=lambda t: abs(t - (scan.end or 0.0) + (scan.duration or 0.0)),
                default=None,
            )
        ends[scan.function, scan.vdev, start] = replace(scan, start=start)
    return ends


def _counts(t: float, scan: Scan) -> bool:
    if scan.start is None or scan.end is None or scan.end <= scan.start:
        return False
    return FIRST <= (t - scan.start) / (scan.end - scan.start) <= LAST


def recordings(
    where: Path, form: str | None = None
) -> Iterator[tuple[str, list[Sample | SampleFailure]]]:
    """Yield every pool's samples in every recording below ``where``, in one raw form if given."""
    for path in sorted(where.rglob("*.jsonl")) if where.is_dir() else [where]:
        pools: dict[str, list[Sample | SampleFailure]] = {}
        for line in path.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            for sample in _samples(line, form, pools):
                pool = sample.pool if isinstance(sample, SampleFailure) else sample.pool.name
                pools.setdefault(pool, []).append(sample)
        if not pools:
            raise SystemExit(f"{path}: not a recording")
        for samples in pools.values():
            yield f"{path.parent.name}/{path.stem}", samples


def _samples(line: str, form: str | None, known: Iterable[str]) -> Sequence[Sample | SampleFailure]:
    """Return the samples of a line; a line without pools, as after an export, is a gap for each."""
    t = None
    try:
        raw = raw_of(line)
        t = raw["t"]
        for other in FORMS if form else ():
            if other != form:
                raw.pop(other, None)  # type: ignore[misc]
        if found := decode(raw):
            return found
        why = "no pool in it"
    except NotRawError as error:
        t, why = error.t, str(error)
    except NotUnderstoodError as error:
        why = str(error)
    return [SampleFailure(pool, t, t, why, gap=True) for pool in known if t is not None]


def table(judged: Iterable[Judged]) -> list[str]:
    """Return the lines to print: one per scan, and the verdict."""
    rows = list(judged)
    if not rows:
        return ["no scan finished in these recordings"]
    lines = [f"{'recording':34} {'scan':9} {'n':>4}  ours zpool ratio cover width"]
    for row in rows:
        worse = " WORSE" if fmean(row.ours) > fmean(row.zpool) + BAR_WORSE else ""
        width = median(row.widths) if row.widths else math.nan
        means = f"{fmean(row.ours):5.3f} {fmean(row.zpool):5.3f} {row.ratio:5.2f}"
        ranges = f"{fmean(row.covered):5.2f} {width:5.2f}{worse}"
        lines.append(f"{row.name:34} {row.scan.function:9} {len(row.ours):4} {means} {ranges}")
    return [*lines, "", *verdict(rows)]


def verdict(rows: Sequence[Judged]) -> list[str]:
    """Return the summary figures, each with its target."""
    ratio, told = (
        math.exp(fmean(map(math.log, ratios)))
        for ratios in ([row.ratio for row in rows], [row.told_ratio for row in rows])
    )
    beyond = max(rows, key=lambda row: fmean(row.ours) - fmean(row.zpool))
    farthest = fmean(beyond.ours) - fmean(beyond.zpool)
    worse = sum(fmean(row.ours) > fmean(row.zpool) + BAR_WORSE for row in rows)
    covered = fmean([c for row in rows for c in row.covered])
    least = min(rows, key=lambda row: fmean(row.covered))
    width = median([w for row in rows for w in row.widths])
    return [
        f"geometric mean of the ratios {ratio:.3f} (at most {BAR_RATIO}), once an end is told "
        f"{told:.3f}",
        f"scans worse than zpool by {BAR_WORSE} {worse} of {len(rows)} (none); "
        f"the worst {farthest:+.3f} ({beyond.name})",
        f"true end in the range {covered:.1%} (at least {BAR_COVERED:.0%})",
        f"the same in each scan, least {fmean(least.covered):.0%} "
        f"(at least {BAR_EACH:.0%}; {least.name})",
        f"median width {width:.2f} (at most {BAR_WIDTH})",
    ]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path, nargs="+")
    parser.add_argument("--form", choices=FORMS, help="read only this raw form")
    options = parser.parse_args(arguments)
    for where in options.directory:
        if not where.exists():
            parser.exit(2, f"{where}: no such file or directory\n")
    found = (r for where in options.directory for r in recordings(where, options.form))
    print("\n".join(table(row for name, samples in found for row in judge(name, samples))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
