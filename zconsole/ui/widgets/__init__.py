"""Lines, bars, sparklines and glyphs that panes and dialogs are drawn with."""
