"""Measurements of speed; each prints what it compares side by side, from one process."""
