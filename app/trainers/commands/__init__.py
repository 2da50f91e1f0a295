"""Menu entries for runs and models of other trainers."""
