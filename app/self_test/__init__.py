"""``--self-test``: a test whether this copy is complete and its numbers are right, by actually running it."""
