"""Programs that run inside a machine, on the tree under test."""
