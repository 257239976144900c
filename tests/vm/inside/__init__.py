"""Programs that run inside a machine, over the tree under test."""
