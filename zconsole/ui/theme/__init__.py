"""Theme files, and the styles made of them."""
