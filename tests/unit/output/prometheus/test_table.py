"""Names and labels of the metrics are those that Prometheus recommends."""

from __future__ import annotations

import re

from tests.unit.output.prometheus.shipped import BY_NAME
from zconsole.output.prometheus.metrics import FAMILIES


def test_names_follow_the_custom_and_labels_are_declared():
    for name, text, labels in FAMILIES:
        assert re.fullmatch(r"zconsole_[a-z_]+", name)
        assert text
        assert len(set(labels)) == len(labels)


def test_no_label_is_one_that_prometheus_adds_itself():
    assert {label for family in FAMILIES for label in family.labels} & {"job", "instance"} == set()


def test_each_name_stands_for_one_metric():
    assert len(BY_NAME) == len(FAMILIES)


def test_a_counter_is_told_by_its_name():
    assert [family.name for family in FAMILIES if family.counts] == ["zconsole_device_errors_total"]
