"""Pool configs as the kernel packs them, read by a helper process that can be abandoned."""
