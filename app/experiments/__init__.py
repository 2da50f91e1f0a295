"""Panels about many runs: the race, the sweep, repeats, the queue and the comparison of runs."""
