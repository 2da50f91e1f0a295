"""Controllers of lessons, presenting and homework."""
