"""What is kept of a scan when it is over: its rates, devices, limits, promises and changes."""
