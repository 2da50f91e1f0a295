"""Drawing of numbers: curves, bars, axes, table twins, export. Widgets that know nothing of runs."""
