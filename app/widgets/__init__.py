"""Widgets that several parts of the window use, and the base of all panels."""
