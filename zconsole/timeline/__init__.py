"""A pool over time: rates, scans, ETAs, events, frames and alerts; stored between runs."""
