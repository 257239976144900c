from __future__ import annotations

import pytest

from zconsole.tunables.effect import EffectSample, measure


def points(start, stop, rate, latency=0.01):
    return [EffectSample(float(t), rate, latency) for t in range(start, stop)]


def test_gain_and_cost_of_one_change():
    series = [*points(0, 100, 100.0, 0.010), *points(100, 300, 150.0, 0.012)]
    effect = measure(series, 100.0)
    assert effect.gain == pytest.approx(0.5)
    assert effect.cost == pytest.approx(0.2)


def test_what_settles_does_not_count():
    series = [*points(0, 100, 100.0), *points(100, 115, 9999.0), *points(115, 200, 100.0)]
    assert measure(series, 100.0).gain == pytest.approx(0.0)


def test_neither_side_reaches_past_another_change():
    series = [
        *points(0, 50, 1.0),
        *points(50, 100, 100.0),
        *points(100, 150, 200.0),
        *points(150, 300, 5.0),
    ]
    assert measure(series, 100.0, others=[50.0, 100.0, 150.0]).gain == pytest.approx(1.0)


def test_too_few_samples_say_nothing():
    effect = measure(points(98, 118, 100.0), 100.0)
    assert effect.issue_before is None
    assert effect.gain is None
