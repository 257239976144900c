"""The past of a pool: rates, scans, changes; stored between runs."""
