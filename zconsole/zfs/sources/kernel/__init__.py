"""A config as the kernel packs it: a helper process asks for it, so that it can be abandoned."""
