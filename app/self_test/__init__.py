"""``--self-test``: a test of whether this copy is complete and its numbers are correct, by actually running it."""
