"""The message bar, for messages that do not interrupt the user's work."""
