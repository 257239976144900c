"""What the main screen shows, one module for each pane."""
