"""The command line: options, and one module for each command."""
