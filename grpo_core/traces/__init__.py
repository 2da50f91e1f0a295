"""Runs of other trainers: importers, one file per format, and recorders that run inside a trainer."""
