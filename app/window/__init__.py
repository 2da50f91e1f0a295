"""The main window: its docks, their positions in the named layouts, its toolbar.

It contains no logic of runs or commands.
"""
