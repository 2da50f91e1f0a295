"""The main window: its docks, their positions in the named layouts, and its toolbar.

It contains no logic of runs or commands.
"""
