"""Reports of scans: their rates, devices, limits, ETAs and changes of tunables, stored on disk."""
