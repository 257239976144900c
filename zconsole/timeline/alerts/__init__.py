"""Alerts: detects what is worth waking someone for, and sends it."""
