"""Plotting of numbers: curves, bars, axes, tables and export. Nothing here depends on runs."""
