"""Lines, bars and sparklines that panes and dialogs are drawn with, and the views of lines."""
