"""Files moved: copied and exchanged or rewritten, one batch at a time, and nothing lost."""
