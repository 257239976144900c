"""Why a scan is slow, and what is breaking."""
