"""Run files, one SQLite file per run, and the folder that holds them."""
