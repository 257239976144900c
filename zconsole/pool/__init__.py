"""Facts about one pool, derived without I/O: its tree, redundancy, health, balance, what-if."""
