"""The configuration: one TOML file, what may stand in it, and how a look is saved to it."""
