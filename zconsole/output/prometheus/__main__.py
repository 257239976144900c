"""Writes the dashboard and the alert rules to ``share/``, from the table of metrics."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from zconsole.output.prometheus.alert_rules import alert_rules
from zconsole.output.prometheus.dashboard import dashboard

SHARE = Path(__file__).parents[2] / "share"


def made() -> Mapping[Path, str]:
    """The files and what they hold."""
    return {
        SHARE / "grafana-dashboard.json": dashboard(),
        SHARE / "prometheus-rules.yml": alert_rules(),
    }


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text)
