"""The bandit: a tabular policy in NumPy whose completions have one or a few tokens."""
