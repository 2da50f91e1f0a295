"""How numbers look: curves, bars, axes, table twins, export. Widgets that know nothing of runs."""
