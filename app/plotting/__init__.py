"""Plotting of numbers: curves, bars, axes, table twins, export. These widgets know nothing of runs."""
