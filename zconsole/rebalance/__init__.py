"""Rewriting files so that their blocks spread over all vdevs, without losing one."""
