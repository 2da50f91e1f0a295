"""Presenting to a class: full screen, projector settings, and a second window for the speaker."""
