"""The grid of tokens: cells, tints, notes and its film, for panels and lessons."""
