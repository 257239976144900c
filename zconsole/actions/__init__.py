"""Actions on live pools: a plan made by a pure function, then a confirmed and audited run."""
