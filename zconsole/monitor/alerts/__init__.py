"""Alerts: what is worth waking somebody for, and how they are sent."""
