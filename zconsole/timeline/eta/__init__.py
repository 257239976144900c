"""When a scan ends: its course so far, windowed slopes, and an estimate with a range."""
