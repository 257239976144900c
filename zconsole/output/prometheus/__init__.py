"""Prometheus metrics of what no other exporter knows: stages, windowed rates, ETA, redundancy."""
