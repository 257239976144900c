"""The limit of a pool's running scan, kept from sample to sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from zconsole.diagnosis.bottleneck.finding import TOO_LITTLE, Ceiling, Verdict
from zconsole.history.views import ScanView
from zconsole.pool.model import IoRates, Sample
from zconsole.pool.topology import Placed

if TYPE_CHECKING:
    from zconsole.diagnosis.bottleneck.assessor import Assessor


class BottleneckTracker:
    """Fed with every sample; judges the first running scan, by those before it too.

    The first sample of one has no rates to judge by: what judges is loaded with the second.
    """

    def __init__(self) -> None:
        self.verdict: Verdict | None = None
        self.ceiling: Ceiling | None = None
        self._first: Sample | None = None
        self._judging: Assessor | None = None

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
            self.verdict = self.ceiling = self._first = None
        elif self._first is None:
            self.verdict, self._first = TOO_LITTLE, sample
        else:
            judging = self._judging = self._judging or _judging(self._first, view)
            judging.push(sample, tree, rates, view)
            self.verdict, self.ceiling = judging.verdict, judging.ceiling


def _judging(first: Sample, view: ScanView) -> Assessor:
    from zconsole.diagnosis.bottleneck.assessor import Assessor

    return Assessor(first, view.scan.key)
