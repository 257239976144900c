"""The dashboard shows every metric, and uses no unknown one."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from tests.table import rows
from tests.unit.output.prometheus.shipped import BY_NAME, NAME, SHARE, named


@pytest.fixture(scope="module")
def panels():
    return json.loads((SHARE / "grafana-dashboard.json").read_text())["panels"]


def panel_of(panels, name):
    (found,) = [p for p in panels if any(name in t["expr"] for t in p.get("targets", ()))]
    return found


def test_every_metric_has_its_place_and_no_other_is_asked_for(panels):
    asked = [name for p in panels for t in p.get("targets", ()) for name in NAME.findall(t["expr"])]
    assert sorted(asked) == sorted(BY_NAME)


def test_a_query_asks_for_labels_that_the_metric_has(panels):
    for panel in panels:
        for target in panel.get("targets", ()):
            (family,) = named(target["expr"])
            assert ('pool=~"$pool"' in target["expr"]) == ("pool" in family.labels)


def test_panels_do_not_overlap_and_stay_on_the_grid(panels):
    cells = [
        {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        for place in (panel["gridPos"] for panel in panels)
    ]
    assert all(x < 24 for each in cells for x, _ in each)
    assert not any(one & other for one, other in combinations(cells, 2))
    assert len({panel["id"] for panel in panels}) == len(panels)


@rows(
    ("name", "kind", "unit"),
    [
        ("zconsole_pool_health", "stat", "none"),
        ("zconsole_last_scan_end_timestamp_seconds", "stat", "dateTimeFromNow"),
        ("zconsole_scan_stalled_seconds", "timeseries", "s"),
        ("zconsole_device_read_bytes_per_second", "timeseries", "Bps"),
        ("zconsole_balance_imbalance_bytes", "timeseries", "bytes"),
        ("zconsole_vdev_fill_ratio", "timeseries", "percentunit"),
    ],
)
def test_the_name_of_a_metric_tells_its_panel(panels, name, kind, unit):
    panel = panel_of(panels, name)
    assert (panel["type"], panel["fieldConfig"]["defaults"]["unit"]) == (kind, unit)


def test_a_counter_is_shown_by_its_growth_and_a_date_in_milliseconds(panels):
    errors = panel_of(panels, "zconsole_device_errors_total")["targets"][0]["expr"]
    assert errors.startswith("increase(")
    date = panel_of(panels, "zconsole_pool_sample_timestamp_seconds")["targets"][0]["expr"]
    assert date.endswith(" * 1000")
