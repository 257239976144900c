"""A job: made, run, paced, judged, watched, steered and resumed."""
