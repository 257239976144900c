"""Prometheus metrics that no other exporter has: stages, recent rates, ETA, redundancy."""
