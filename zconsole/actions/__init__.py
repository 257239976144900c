"""What can be done to a pool: plan, confirm, run, follow, log."""
