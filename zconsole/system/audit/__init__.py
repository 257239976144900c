"""The audit log: what was changed, by whom, written before and after each change."""
