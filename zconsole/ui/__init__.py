"""Console of Textual screens; no other package imports textual."""
