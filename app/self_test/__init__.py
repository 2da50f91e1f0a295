"""``--self-test``: whether this copy is whole and its numbers are right, tried out rather than looked up."""
