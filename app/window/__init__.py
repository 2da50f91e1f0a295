"""The main window: its docks, where each stands in a named layout, its toolbar. No logic of runs or commands."""
