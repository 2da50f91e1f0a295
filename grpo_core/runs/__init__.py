"""Run files: one SQLite file a run, and the folder that keeps them."""
