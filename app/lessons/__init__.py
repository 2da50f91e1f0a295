"""Lessons in the window: their player and pages, the progress that is saved, and the small interactives in them."""
