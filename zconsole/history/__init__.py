"""What is remembered of a pool over time: rates, scans, changes; and kept between runs."""
