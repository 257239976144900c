"""Everything that speaks with ZFS: sources of raw forms, and their decoding."""
