"""Theme files, the styles made of them, and the theme that was chosen last."""
