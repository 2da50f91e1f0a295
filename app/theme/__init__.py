"""Colours by meaning, type sizes, palette and stylesheet of the entire program."""
