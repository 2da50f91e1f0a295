"""How numbers look: colours, type, plots, table twins. Widgets that know nothing of runs."""
