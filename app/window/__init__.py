"""The main window: its docks, their places in the named layouts, its toolbar. It has no logic of runs or commands."""
