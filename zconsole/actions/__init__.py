"""Actions on live pools: a pure plan first, then a confirmed, audited, followed run of it."""
