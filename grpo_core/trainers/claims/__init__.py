"""Claims about the runs of other trainers, each with a check on the recorded data."""
