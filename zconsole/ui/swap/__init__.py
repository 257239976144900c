"""The guided disk swap in the console: choose a way, follow the checklist, step by step."""
