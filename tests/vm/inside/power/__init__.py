"""Power cuts replayed from a log of writes, inside a machine: one each flush of the disk."""
