"""Lines, bars, sparklines and glyphs: what panes and dialogs are drawn with."""
