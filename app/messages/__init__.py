"""The message bar: what the window tells without standing in the way of the work."""
