"""Showing the program to a class: full screen, for a projector, with a second window for the speaker."""
