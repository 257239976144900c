"""The configuration: one TOML file, its settings, and saving the look of the console to it."""
