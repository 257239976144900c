"""What time adds to a pool: rates, scans, ETAs, events, frames and alerts; stored between runs."""
