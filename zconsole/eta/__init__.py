"""When a scan ends: its course so far, windowed slopes, and an estimate with a range."""

from __future__ import annotations

from zconsole.eta.estimate import Estimate, Forecast, Work, forecast, nothing

__all__ = ["Estimate", "Forecast", "Work", "forecast", "nothing"]
