"""The alert rules use only existing metrics, and fire when they should."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.table import rows
from tests.unit.output.prometheus.promtool import needs_promtool, promtool
from tests.unit.output.prometheus.shipped import BY_NAME, NAME, SHARE, named, rules

FILE = SHARE / "prometheus-rules.yml"
CASES = [Path(__file__).with_name(f"{name}.yml") for name in ("alert_rules", "alert_rules_of_days")]
SCRAPED = {"instance", "job"}
"""Labels that Prometheus adds to every metric."""


def test_every_rule_of_the_file_is_looked_at():
    assert len(rules()) == (SHARE / "prometheus-rules.yml").read_text().count("- alert: ") > 10


@rows("rule", rules())
def test_a_rule_asks_for_metrics_and_labels_of_the_table(rule):
    families = named(rule.expression)
    assert families
    labels = SCRAPED.union(*(family.labels for family in families))
    asked = re.findall(r"(\w+)=?[=!~]+\"", rule.expression)
    shown = re.findall(r"\$labels\.(\w+)", rule.summary)
    assert {*asked, *shown, "pool"} <= labels


def test_every_rule_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    cases = "".join(map(Path.read_text, CASES))
    for rule in rules():
        fires, quiet = (
            re.search(rf"alertname: {rule.name}\n +exp_alerts:{end}", cases)
            for end in (r"\n +- exp_labels", r" \[\]")
        )
        assert fires, rule.name
        assert quiet, rule.name


def test_the_cases_are_of_metrics_that_are_exported():
    assert set(NAME.findall("".join(map(Path.read_text, CASES)))) <= BY_NAME.keys()


@needs_promtool
def test_promtool_finds_nothing_wrong_with_the_rules():
    status, said = promtool("check", "rules", "--lint=all", "--lint-fatal", str(FILE))
    assert status == 0, said


@pytest.mark.slow
@needs_promtool
def test_the_rules_fire_as_they_should():
    status, said = promtool("test", "rules", *map(str, CASES))
    assert status == 0, said
