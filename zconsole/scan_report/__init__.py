"""The stored report of a scan: its rates, devices, limits, estimates and changes."""
