"""The grid of tokens with its cells, tints, notes and film, for panels and lessons."""
