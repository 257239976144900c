"""Diagnosis: what slows a scan down, and which devices are failing."""
