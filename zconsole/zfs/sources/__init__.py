"""Where samples come from: the kernel, zpool, saved text, recordings."""
