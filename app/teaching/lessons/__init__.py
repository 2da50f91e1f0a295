"""Lessons in the main window: the player and its pages, the saved progress, and the interactive pictures."""
