"""The message bar, which shows messages without interrupting the user's work."""
