"""Theme files, and the styles made from them."""
