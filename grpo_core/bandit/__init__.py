"""The bandit: a tabular policy whose completions are one token long, or a few (NumPy)."""
