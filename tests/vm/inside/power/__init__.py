"""Power cuts replayed from a log of writes, inside a machine: one for each flush of the disk."""
