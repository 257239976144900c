"""Everything that talks to ZFS: sources of raw forms, and their decoding."""
