"""Device errors with their time and likely cause, such as a cable or the disk itself."""
