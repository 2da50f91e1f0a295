"""Measurements of speed. Each prints what it compares side by side, from one process."""
