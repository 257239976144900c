"""The lock: zconsole's behavior, pinned by its output.

``python -m tests.lock make|check|show [PART]``.
"""
