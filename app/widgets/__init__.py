"""Widgets used by several parts of the window, and the base class of all panels."""
