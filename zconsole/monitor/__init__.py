"""Samples become frames: one session a source, feeds of frames, alerts over them."""
