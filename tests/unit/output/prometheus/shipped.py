"""The dashboard and the alert rules as shipped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import zconsole
from zconsole.output.prometheus.metrics import FAMILIES, Family

SHARE = Path(zconsole.__file__).with_name("share")
NAME = re.compile(r"\bzconsole_\w+")
"""Matches the name of a metric in an expression."""
BY_NAME = {family.name: family for family in FAMILIES}
_RULE = re.compile(r"- alert: (\w+)\n +expr: '(.*)'\n(?:.*\n){4} +summary: '(.*)'\n", re.ASCII)


class Rule(NamedTuple):
    """An alert rule."""

    name: str
    expression: str
    summary: str


def rules() -> list[Rule]:
    """Return the rules of the file; a quote inside one is doubled there."""
    found = _RULE.findall((SHARE / "prometheus-rules.yml").read_text())
    return [Rule(*(text.replace("''", "'") for text in rule)) for rule in found]


def named(expression: str) -> tuple[Family, ...]:
    """Return the metrics of an expression, each once; raises KeyError for an unknown one."""
    return tuple(BY_NAME[name] for name in dict.fromkeys(NAME.findall(expression)))
