"""What zconsole does, pinned by what it prints: `python -m tests.lock make|check|show [PART]`."""
