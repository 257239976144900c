"""The limit of a pool's running scan, kept from sample to sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zconsole.frame import ScanView
from zconsole.limits.ceiling import ceiling_of
from zconsole.limits.evidence import Disk, disks_of, evidence_of, sorted_share
from zconsole.limits.finding import Ceiling, Verdict
from zconsole.limits.past import LeafPast
from zconsole.limits.verdict import judge
from zconsole.model import IoRates, Sample
from zconsole.topology import Placed

FEW = 64
"""Leaves up to which every sample is looked at."""
SELDOM = 20.0
"""Seconds between looks at larger pools."""


class LimitBook:
    """Fed with every sample; judges the first running scan."""

    def __init__(self) -> None:
        self.verdict: Verdict | None = None
        self.ceiling: Ceiling | None = None
        self._past: dict[str, LeafPast] = {}
        self._scan: tuple[str, str | None, float | None] | None = None
        self._since = 0.0
        self._looked = float("-inf")
        self._issuing: bool | None = None
        self._turns = 0
        self._sorted: float | None = None

    def push(
        self,
        sample: Sample,
        tree: Mapping[str, Placed],
        rates: Mapping[str, IoRates],
        views: Sequence[ScanView],
    ) -> None:
        """Take in a sample whose rates and scans are known."""
        view = next((v for v in views if v.scan.state == "running"), None)
        if view is None:
            self.verdict = self.ceiling = self._scan = None
            self._past.clear()
            return
        if view.scan.key != self._scan:
            self._begin(view, sample.clock)
        self._count_turns(view)
        if len(tree) > FEW and sample.clock - self._looked < SELDOM:
            return
        self._looked = sample.clock
        self._remember(sample.clock, tree, rates)
        self._judge(sample, view, tree, disks_of(view, tree, rates, self._past))

    def _begin(self, view: ScanView, clock: float) -> None:
        self._scan, self._since = view.scan.key, clock
        self._issuing, self._turns, self._sorted = None, 0, None

    def _count_turns(self, view: ScanView) -> None:
        issuing = view.stage == "issuing"
        if self._issuing is not None and issuing != self._issuing:
            self._turns += 1
            self._sorted = None
        self._issuing = issuing
        now = sorted_share(view.scan)
        self._sorted = now if self._sorted is None or now is None else max(self._sorted, now)

    def _remember(
        self, clock: float, tree: Mapping[str, Placed], rates: Mapping[str, IoRates]
    ) -> None:
        for key, place in tree.items():
            if place.vdev.children or key not in rates:
                continue
            past = self._past.get(key)
            if past is None:
                past = self._past[key] = LeafPast()
            past.add(clock, place.vdev, rates[key])
        for key in self._past.keys() - tree.keys():
            del self._past[key]

    def _judge(
        self,
        sample: Sample,
        view: ScanView,
        tree: Mapping[str, Placed],
        disks: tuple[Disk, ...],
    ) -> None:
        watched = sample.clock - self._since
        seen = evidence_of(sample, view, disks, tree, watched, self._turns, self._sorted)
        self.verdict, self.ceiling = judge(seen), ceiling_of(seen)
