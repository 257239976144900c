"""Pure facts of one pool: what it is, how safe, how even, and what if."""
