"""Mutants that change nothing anybody can see, each with its reason."""

from __future__ import annotations

EQUIVALENT: dict[str, tuple[str, ...]] = {}
"""By reason the identities of mutants (``Mutant.identity``)."""
REASONS = {identity: reason for reason, those in EQUIVALENT.items() for identity in those}
