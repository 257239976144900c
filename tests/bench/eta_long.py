"""ETAs of long simulated scans, against three others: ``python -m tests.bench.eta_long``.

The scans are forty seeded ones of 8 hours to 20 days (``tests.bench.long_scans``). At 10, 25 and
50 % of the predictable time, the error |eta - true| / max(eta, true) is computed for our ETA and
for three others: from zpool's average over the pass, from the last 30 minutes, and from an
exponentially smoothed rate. The last line of each moment tells in how many scans the true end lies
in our range, and the median width of that as a share of the true time left. With ``--past``, the
next scan of each pool is judged as well, after the first one was watched.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from statistics import median, quantiles

from tests.bench.eta import error
from tests.bench.long_scans import LongScan, Track, long_scans
from zconsole.timeline.pool import PoolTimeline

COUNT = 40
SEED = 26
MOMENTS = (0.10, 0.25, 0.50)
WINDOW = 1800.0
SMOOTHED = 1800.0
"""Time constant of the smoothing, seconds: after it, the weight of a value has fallen to 1/e."""
Row = dict[str, float]
"""At one moment: the error of each estimator, whether our range has the end, and its width."""
NAMES = ("ours", "zpool", "window", "smooth")


def estimates(scan: LongScan, timeline: PoolTimeline) -> Iterator[Row]:
    """Yield the errors at each of the MOMENTS; the timeline is fed every sample."""
    wanted = [scan.onset + share * (scan.end - scan.onset) for share in MOMENTS]
    for sample in scan.samples:
        frame = timeline.push(sample)
        if wanted and sample.t >= wanted[0] and sample.t < scan.end:
            wanted.pop(0)
            view = frame.scans[0]
            left = (view.scan.to_issue_bytes or 0) - (view.scan.issued_bytes or 0)
            told = others(scan.track, sample.t, left)
            told["ours"], told["zpool"] = view.estimate.eta, view.scan.zpool_eta
            true, low, high = scan.end - sample.t, view.estimate.low, view.estimate.high
            row = {name: error(told[name], true) for name in NAMES}
            if low is not None and high is not None:
                row |= {"within": low <= true <= high, "width": (high - low) / true}
            yield row


def others(track: Track, t: float, left: float) -> dict[str, float | None]:
    """Return the remaining seconds by a 30-minute window and by exponential smoothing."""
    seen = [point for point in track if point[0] <= t]
    if len(seen) < 2:
        return {"window": None, "smooth": None}
    old = next(point for point in seen if point[0] >= t - WINDOW)
    rate = (seen[-1][1] - old[1]) / WINDOW
    smooth = seen[1][1] / (seen[1][0] - seen[0][0])
    for a, b in pairwise(seen):
        weight = min(1.0, (b[0] - a[0]) / SMOOTHED)
        smooth += weight * ((b[1] - a[1]) / (b[0] - a[0]) - smooth)
    return {
        "window": left / rate if rate > 0 else None,
        "smooth": left / smooth if smooth else None,
    }


def table(rows: Sequence[tuple[str, list[Row]]]) -> list[str]:
    """Return one line per moment and estimator: the median over the scans, and the quartiles."""
    lines = [f"{len(rows)} scans", f"{'at':>4}  {'':6} median  quartiles"]
    for n, share in enumerate(MOMENTS):
        for name in NAMES:
            errors = [found[n][name] for _, found in rows if len(found) > n]
            low, _, high = quantiles(errors, n=4)
            lines.append(f"{share:4.0%}  {name:6} {median(errors):6.3f}  {low:.3f} to {high:.3f}")
        ranges = [found[n] for _, found in rows if len(found) > n and "width" in found[n]]
        within, width = sum(row["within"] for row in ranges), median(r["width"] for r in ranges)
        has = f"has the end in {within:g} of {len(ranges)}"
        lines.append(f"{share:4.0%}  range  {has}, {width:.2f} wide")
    return lines


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--past", action="store_true", help="then tell each pool's next scan")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--each", action="store_true", help="print each scan, too")
    options = parser.parse_args(arguments)
    firsts, nexts = [], []
    for play in islice(long_scans(options.seed), options.count):
        timeline = PoolTimeline()
        firsts.append(told(play(), timeline, options.each))
        if options.past:
            nexts.append(told(play(), timeline, options.each))
    print("\n".join(table(firsts)))
    if nexts:
        print("\n".join(["", "with one earlier scan", *table(nexts)]))
    return 0


def told(scan: LongScan, timeline: PoolTimeline, printed: bool) -> tuple[str, list[Row]]:
    """Return the name of a scan and the errors of its estimates."""
    found = list(estimates(scan, timeline))
    if printed:
        hours = (scan.end - scan.start) / 3600
        errors = "  ".join(" ".join(f"{row[name]:.3f}" for name in NAMES) for row in found)
        print(f"{scan.name:24} {hours:6.1f} h  {errors}", flush=True)
    return scan.name, found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
