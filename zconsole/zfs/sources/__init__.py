"""Where samples come from: libzfs, zpool, saved text, recordings."""
