"""Measurements of speed. Each prints the results that it compares side by side, from one process."""
