"""``--self-test``: a test of whether this copy is complete and its numbers are right, by actually running it."""
