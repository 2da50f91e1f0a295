"""Lessons in the window: who gives them, what is remembered of them, and the small interactives in them."""
