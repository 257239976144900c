"""What limits a running scan, and its estimated maximum, judged from figures of any real pool."""
