"""What a running scan waits for, and how fast it could go: judged from what any real pool shows."""
