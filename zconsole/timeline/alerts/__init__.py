"""Alerts: what is worth waking someone for, and how it is sent."""
