"""The alert rules ask only for metrics there are, and fire when they should."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.table import rows
from tests.unit.output.prometheus.promtool import needs_promtool, promtool
from zconsole.output.prometheus.__main__ import SHARE, made
from zconsole.output.prometheus.alert_rules import NAME, RULES, named
from zconsole.output.prometheus.table import FAMILIES

FILE = SHARE / "prometheus-rules.yml"
CASES = Path(__file__).with_name("alert_rules.yml")
SCRAPED = {"instance", "job"}
"""Labels that Prometheus adds to every metric."""


def test_the_files_are_those_that_the_table_makes():
    for path, text in made().items():
        assert path.read_text() == text, "run python -m zconsole.output.prometheus"


@rows("rule", RULES)
def test_a_rule_asks_for_metrics_and_labels_of_the_table(rule):
    families = named(rule.expression)
    assert families
    labels = SCRAPED.union(*(family.labels for family in families))
    asked = re.findall(r"(\w+)=?[=!~]+\"", rule.expression)
    shown = re.findall(r"\$labels\.(\w+)", rule.summary)
    assert {*asked, *shown, "pool"} <= labels


def test_a_metric_that_is_not_in_the_table_is_refused():
    with pytest.raises(KeyError, match="zconsole_pool_mood"):
        named("zconsole_pool_mood > 0")


def test_every_rule_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    cases = CASES.read_text()
    for rule in RULES:
        fires, quiet = (
            re.search(rf"alertname: {rule.name}\n +exp_alerts:{end}", cases)
            for end in (r"\n +- exp_labels", r" \[\]")
        )
        assert fires, rule.name
        assert quiet, rule.name


def test_the_cases_are_of_metrics_that_are_exported():
    assert set(NAME.findall(CASES.read_text())) <= {family.name for family in FAMILIES}


@needs_promtool
def test_promtool_finds_nothing_wrong_with_the_rules():
    status, said = promtool("check", "rules", "--lint=all", "--lint-fatal", str(FILE))
    assert status == 0, said


@pytest.mark.slow
@needs_promtool
def test_the_rules_fire_as_they_should():
    status, said = promtool("test", "rules", str(CASES))
    assert status == 0, said
